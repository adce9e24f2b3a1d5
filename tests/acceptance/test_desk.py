"""`fdstore put` and `fdstore ask` with what lies on a desk: documents, tables, archives, and what is no
text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fdstore
from fdstore.testing import Reply, Request, ScriptedModel, call, say
from tests.acceptance.conftest import peak_bytes
from tests.desk import FILES, make_desk
from tests.unit.files.documents_made import DOCUMENTS, pdf_of
from tests.waiting import wait_until

TEXT = "[page 1]\none\n[page 2]\ntwo\n"

TEXTS = {
    *(
        "app.log",
        "notes.md",
        "people.csv",
        "found.json",
        "events.jsonl",
        "tool.py",
        "page.html",
        "config.toml",
    ),
    *("old.log", "older.log", "oldest.log", "logs.tar.gz/a/b.log", "logs.tar.gz/a/c.csv"),
    "mail.zip/one.txt",
    *(f"report{suffix}.txt" for suffix in DOCUMENTS),
    "mail.zip/two/report.pdf.txt",
}
BYTES = {
    *(
        "latin.txt",
        "wide.txt",
        "photo.png",
        "program",
        "table.parquet",
        "backup.7z",
        "noise.bin",
        "words.sqlite3",
    ),
    *(f"report{suffix}" for suffix in DOCUMENTS),
    "mail.zip/two/report.pdf",
}


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.pdf"
    path.write_bytes(DOCUMENTS[".pdf"])
    return path


def test_a_document_is_stored_with_its_text(command, store, report):
    ended = command("put", "triage", report)

    assert (ended.code, ended.lines) == (0, ["name:report.pdf", "name:report.pdf.txt"]), ended.err
    proc = store.process("triage")
    assert proc.read_bytes("name:report.pdf") == DOCUMENTS[".pdf"]
    assert proc.stat("name:report.pdf").media_type == "application/pdf"
    assert proc.read("name:report.pdf.txt").text == TEXT


def test_a_document_gets_the_name_that_is_given_and_that_name_with_txt(command, store, report):
    named = command("put", "triage", report, "--name", "q3", "--source", "bank")
    taken = command("put", "triage", report, "--name", "q3", "--if-absent")
    piped = command("put", "triage", "-", "--name", "piped", stdin=DOCUMENTS[".xlsx"])
    prefixed = command("put", "triage", report, "--name-prefix", "p/")
    whole = command("put", "triage", report, "--bytes")

    assert named.lines == ["name:q3", "name:q3.txt"]
    assert taken.err == "fdstore: conflict: name:q3 exists; nothing was changed\n"
    assert piped.lines == ["name:piped", "name:piped.txt"]
    assert prefixed.lines == ["name:p/report.pdf", "name:p/report.pdf.txt"]
    assert len(whole.lines) == 1
    assert whole.lines[0].startswith("fd:")
    assert store.process("triage").stat("name:piped.txt").media_type == "text/csv"


@pytest.mark.thorough("documents as a command reads them")
def test_a_document_that_is_read_names_its_text_if_that_is_stored(command, tmp_path):
    (tmp_path / "report.pdf").write_bytes(pdf_of("Revenue rose."))
    command("put", "triage", "report.pdf", "--name", "report.pdf")
    command("put", "triage", "report.pdf", "--name", "alone", "--bytes")
    calls = [["read", "{}"], ["search", "{}", "rose"], ["sql", "{}", "FROM content"], ["tail", "{}"]]

    for verb, *words in calls:
        named = command(verb, "triage", *[word.format("name:report.pdf") for word in words])
        alone = command(verb, "triage", *[word.format("name:alone") for word in words])

        assert named.code in (1, 2)
        assert named.err.endswith("not text; its text is name:report.pdf.txt\n")
        assert alone.err.endswith("this makes text of it: pdftotext -layout FILE -\n")


@pytest.mark.thorough("documents as a command reads them")
def test_a_document_without_a_text_is_an_error_that_says_how_to_store_it(command, store, tmp_path):
    (tmp_path / "scan.pdf").write_bytes(pdf_of("", ""))
    problem = (
        "its text cannot be read: none of its 2 pages has text: it is of pictures; ocrmypdf adds text to them"
    )

    named = command("put", "triage", "scan.pdf")
    asked = command("ask", "What does it say?", "scan.pdf", "--demo")
    below = command("put", "triage", "./", "--include", "*.pdf")
    (tmp_path / "torn").write_bytes(b"%PDF-1.7\n" + 2000 * b"torn ")
    torn = command("put", "triage", "torn")

    assert (named.code, named.out) == (1, "")
    assert named.err == f"fdstore: invalid_argument: scan.pdf: {problem}; --bytes stores it as it is\n"
    assert torn.code == 1
    assert torn.err.endswith("(PDFium: Data format error); --bytes stores it as it is\n")
    assert asked.code == 1
    assert asked.err.endswith(f"fdstore: invalid_argument: scan.pdf: {problem}\n")
    assert (below.code, below.lines) == (1, ["name:scan.pdf"])
    assert f"fdstore: left out: ./scan.pdf.txt: {problem}\n" in below.err


def test_all_that_is_text_or_a_document_on_a_desk_is_stored_and_the_rest_has_its_remedy(
    command, store, tmp_path
):
    make_desk(tmp_path / "desk")

    ended = command("put", "triage", "desk/")

    assert ended.code == 0, ended.err
    stored = {each.fd: each.kind for each in store.process("triage").list()}
    start = "name:part 0/more/"
    assert {fd.removeprefix(start) for fd, kind in stored.items() if kind == "text"} == TEXTS
    assert {fd.removeprefix(start) for fd, kind in stored.items() if kind == "bytes"} == BYTES
    for remedy in (
        "desk/part 0/more/wide.txt: UTF-16; this makes text of it: iconv -f utf-16 -t utf-8 FILE",
        "desk/part 0/more/words.sqlite3: a SQLite database; this makes text of it: sqlite3 FILE .dump",
        "desk/part 0/more/backup.7z: a 7-Zip archive; this makes text of it: bsdtar -xOf FILE",
        "desk/part 0/more/program: an ELF program; this makes text of it: readelf -aW FILE",
    ):
        assert f"fdstore: {remedy}\n" in ended.err
    assert f"8 of {len(TEXTS | BYTES)} are not UTF-8, stored as bytes" in ended.err
    assert len(FILES) + 1 >= 25


def model_of(request: Request) -> Reply:
    if request.turn_number == 0:
        return call("sql_fd", fd="name:report.xlsx.txt#L2-2", query="SELECT count(*) AS n FROM content")
    return say(request.last_text())


@pytest.mark.thorough("a whole desk")
def test_ask_takes_a_desk_and_offers_sql_over_its_sheets(command, tmp_path):
    make_desk(tmp_path / "desk")
    for name in ("people.csv", "logs.tar.gz", "table.parquet"):
        (tmp_path / "desk" / "part 0" / "more" / name).unlink()

    with ScriptedModel(model_of) as model:
        command.environment |= model.environ
        ended = command("ask", "How many?", "desk/part 0/more/")

    assert ended.code == 0, ended.err
    assert "sql_fd" in model.requests[0].tools
    assert "report.pdf.txt" in json.dumps(model.requests[0].messages)


@pytest.mark.long
def test_gigabytes_are_refused_over_the_limit_and_else_taken_in_bounded_memory(command, store, tmp_path):
    make_desk(tmp_path / "desk", copies=8, large_bytes=3 << 30)
    store.process("small", limits=fdstore.TreeLimits(tree_bytes=2 << 30))
    store.process("large", limits=fdstore.TreeLimits(tree_bytes=8 << 30))
    words = ("desk", "--max-ratio", "5000", "--max-bytes", "4GiB")

    refused = command("put", "small", *words)

    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("fdstore: quota_exceeded: "), refused.err
    assert store.process("small").list() == []
    peaks = [0]
    with command.start("put", "large", *words, fresh=True) as putting:
        wait_until(lambda: peaks.append(peak_bytes(putting.pid)) or putting.poll() is not None, 3600)
        _, err = putting.communicate()
    assert putting.returncode == 0, err
    assert len(store.process("large").list()) > 200
    assert 0 < max(peaks) < 150 << 20
