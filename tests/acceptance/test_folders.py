"""`fdstore put` and `fdstore ask` over folders, packed files and archives."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
import zipfile
from pathlib import Path

import pytest

import fdstore
from fdstore.testing import Reply, Request, ScriptedModel, call, element, say
from tests.acceptance.conftest import peak_bytes
from tests.unit.files.packing import tar_of, zip_of
from tests.waiting import wait_until

NOISE = random.Random(1).randbytes(3000)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with texts, bytes, packed files, and names that are left out."""
    folder = tmp_path / "logs"
    (folder / "web" / "build").mkdir(parents=True)
    (folder / "web" / "access.log").write_text("GET /\n" * 100)
    (folder / "web" / "old.log.gz").write_bytes(gzip.compress(b"GET /old\n" * 50_000))
    (folder / "web" / "all.tar.gz").write_bytes(
        tar_of(("a/1.log", b"one\n"), ("a/2.log", b"two\n"), ("a/photo.png", NOISE), mode="w:gz")
    )
    (folder / "web" / "build" / "out.o").write_bytes(NOISE)
    (folder / "noise.bin").write_bytes(NOISE)
    (folder / "latin.txt").write_bytes(b"caf\xe9\n" * 50)
    (folder / ".gitignore").write_text("build/\n")
    (folder / ".env").write_text("SECRET=1\n")
    (folder / "link").symlink_to("/etc/passwd")
    return folder


def test_a_folder_is_stored_under_its_names_and_read_back_exactly(command, store, logs):
    ended = command("put", "triage", "logs", "--json")

    assert ended.code == 0, ended.err
    *made, rest = ended.documents
    proc = store.process("triage")
    assert {each["fd"]: each["kind"] for each in made} == {
        "name:logs/latin.txt": "bytes",
        "name:logs/noise.bin": "bytes",
        "name:logs/web/access.log": "text",
        "name:logs/web/all.tar.gz/a/1.log": "text",
        "name:logs/web/all.tar.gz/a/2.log": "text",
        "name:logs/web/all.tar.gz/a/photo.png": "bytes",
        "name:logs/web/old.log": "text",
    }
    assert rest == {"left_out": {"hidden": 2, "link": 1, "by .gitignore": 1}, "odd": []}
    assert proc.read_bytes("name:logs/web/old.log") == b"GET /old\n" * 50_000
    assert proc.read_bytes("name:logs/web/all.tar.gz/a/photo.png") == NOISE
    assert proc.stat("name:logs/web/all.tar.gz/a/photo.png").media_type == "image/png"
    assert proc.stat("name:logs/web/all.tar.gz/a/1.log").source == "all.tar.gz"
    assert [each.fd for each in proc.list(prefix="logs/web/all.tar.gz/")] == [
        f"name:logs/web/all.tar.gz/a/{name}" for name in ("1.log", "2.log", "photo.png")
    ]


def test_what_is_left_out_and_what_is_not_text_is_said(command, store, logs):
    plain = command("put", "triage", "logs/", "--exclude", "*.gz")
    escaped = command(
        "put", "triage", "logs/latin.txt", "logs", "--errors", "backslashreplace", "--name-prefix", "x/"
    )
    whole = command("put", "triage", "logs/web/old.log.gz", "--bytes")

    assert (plain.code, escaped.code, whole.code) == (0, 0, 0)
    assert plain.lines == ["name:latin.txt", "name:noise.bin", "name:web/access.log"]
    assert plain.err == (
        "fdstore: 2 of 3 are not UTF-8, stored as bytes: logs/latin.txt, logs/noise.bin; if they are text: "
        "--encoding latin-1, or --errors backslashreplace\n"
        "fdstore: 6 names left out: 2 hidden, 1 link, 2 by --exclude, 1 by .gitignore\n"
    )
    assert store.process("triage").read("name:x/latin.txt", count=1).text.startswith("caf\\xe9\n")
    assert store.process("triage").read("name:x/logs/latin.txt").lines == "1-50"
    assert store.process("triage").stat("name:x/logs/noise.bin").kind == "bytes"
    assert store.process("triage").stat(whole.out.strip()).media_type == "application/gzip"


def test_one_packed_file_is_stored_under_its_name_or_the_one_that_is_given(command, store, tmp_path):
    (tmp_path / "app.log.gz").write_bytes(gzip.compress(b"line\n" * 1000))
    archive = zip_of({"a": b"1\n", "b/c": b"2\n"})
    (tmp_path / "two.zip").write_bytes(archive)

    runs = [
        command("put", "triage", "app.log.gz"),
        command("put", "triage", "app.log.gz", "--name", "the log"),
        command("put", "triage", "-", stdin=gzip.compress(b"piped\n")),
        command("put", "triage", "-", "--name-prefix", "in/", stdin=archive),
        command("put", "triage", "two.zip", "--name", "x"),
    ]

    assert [ended.code for ended in runs] == [0, 0, 0, 0, 1]
    assert [ended.lines for ended in runs[:4]] == [
        *(["name:app.log"], ["name:the log"], ["fd:3"], ["name:in/stdin/a", "name:in/stdin/b/c"])
    ]
    assert "--name: two.zip has 2 contents, and it is for one; --name-prefix stands before" in runs[4].err
    assert store.process("triage").read("fd:3").text == "piped\n"
    assert store.process("triage").read("name:the log").total_lines == 1000


def test_odd_members_are_left_out_and_the_exit_code_says_so(command, store, tmp_path):
    link = tarfile.TarInfo("a/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    (tmp_path / "odd.tar").write_bytes(tar_of(("../up", b"x"), link, ("good", b"good\n")))

    ended = command("put", "triage", "odd.tar")
    as_json = command("put", "triage", "odd.tar", "--json")

    assert (ended.code, ended.lines) == (1, ["name:odd.tar/good"])
    assert ended.err == (
        "fdstore: left out: odd.tar/../up: its name holds '..'\n"
        "fdstore: left out: odd.tar/a/link: it is a link\n"
    )
    assert as_json.code == 1
    assert [each["problem"] for each in as_json.documents[-1]["odd"]] == [
        "its name holds '..'",
        "it is a link",
    ]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "zeros.gz, unpacked so far, has "),
        (
            ["--max-ratio", "2000", "--max-bytes", "8MB"],
            "8.0 MB for all packed files; if you trust it, raise --",
        ),
        (
            ["--max-members", "1"],
            "pair.zip has 2 members, more than the limit of 1; if you trust it, raise --max-mem",
        ),
    ],
)
def test_a_bomb_is_refused_before_anything_is_stored(command, store, tmp_path, options, problem):
    (tmp_path / "first.txt").write_text("first\n")
    (tmp_path / "pair.zip").write_bytes(zip_of({"a": b"", "b": b""}))
    (tmp_path / "zeros.gz").write_bytes(gzip.compress(bytes(16 << 20)))

    ended = command("put", "triage", "first.txt", "pair.zip", "zeros.gz", *options)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("fdstore: too_large: ")
    assert problem in ended.err
    assert store.processes() == []


def test_what_would_pass_a_limit_of_the_tree_is_refused_before_anything_is_stored(command, store, tmp_path):
    limits = fdstore.TreeLimits(tree_fds=3, tree_bytes=100)
    proc = store.process("triage", limits=limits)
    proc.put("d/a", "old")
    (tmp_path / "d").mkdir()
    for name in "abc":
        (tmp_path / "d" / name).write_text(name)

    fits = command("put", "triage", "d")
    (tmp_path / "d" / "d").write_text("d")
    many = command("put", "triage", "d")
    (tmp_path / "d" / "d").unlink()
    (tmp_path / "d" / "c").write_text("c" * 99)
    large = command("put", "triage", "d")

    assert (fits.code, many.code, large.code) == (0, 1, 1)
    assert "the limit tree_fds of this tree is 3: it has 3, and these are 1 more; close" in many.err
    assert "the limit tree_bytes of this tree is 100: it has 3, and these are 98 more; close" in large.err
    assert (many.out, large.out, proc.read("name:d/c").text) == ("", "", "c")


def test_two_contents_for_one_name_store_nothing(command, store, tmp_path):
    (tmp_path / "a.log").write_text("1\n")
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(b"2\n"))

    ended, asked = command("put", "triage", "."), command("ask", "--demo", "How many?", ".")
    named = command("put", "triage", "a.log", "a.log.gz", "--name-prefix", "x/")

    assert (ended.code, ended.out) == (1, "")
    remedy = "would be name:a.log too; leave one of them out: --exclude /a.log, or --exclude /a.log.gz"
    assert f"{remedy}; or store it by a command of its own with another --name-prefix\n" in ended.err
    assert (asked.code, asked.out) == (1, "")
    assert f"{remedy}\n" in asked.err
    assert "would be name:x/a.log too; name one of them only; or store it by" in named.err
    assert store.processes() == []


def test_on_a_terminal_storing_many_files_shows_how_far_it_is(command, store, tmp_path):
    (tmp_path / "d").mkdir()
    for number in range(400):
        (tmp_path / "d" / str(number)).write_text(f"{number}\n" * 500)

    ended = command.on_terminal("put", "triage", "d", err_too=True)

    assert ended.code == 0
    assert b" of 400 files  " in ended.raw
    assert b" kB of " in ended.raw
    assert b"400 contents: " in ended.raw


@pytest.mark.thorough("a bound of memory")
@pytest.mark.parametrize("packed", ["x.log.gz", "x.zip", "x.tar.gz"])
def test_the_memory_of_put_does_not_grow_with_what_is_packed(command, store, tmp_path, packed):
    line = b"a line of a log that is rather long, and compresses well\n"
    data = line * 1_000_000
    if packed == "x.log.gz":
        (tmp_path / packed).write_bytes(gzip.compress(data, 1))
    elif packed == "x.zip":
        with zipfile.ZipFile(tmp_path / packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.log", data)
    else:
        with tarfile.open(tmp_path / packed, "w:gz", compresslevel=1) as tar:
            info = tarfile.TarInfo("x.log")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    peaks = [0]

    with command.start("put", "triage", packed, "--max-ratio", "5000", fresh=True) as putting:
        wait_until(lambda: peaks.append(peak_bytes(putting.pid)) or putting.poll() is not None)
        out, err = putting.communicate()

    assert putting.returncode == 0, err
    assert store.process("triage").stat(out.decode().strip()).bytes == len(data)
    assert 0 < max(peaks) < 130 << 20


# ask


def model_of(request: Request) -> Reply:
    if request.turn_number == 0:
        return call("list_fds", prefix="logs/web/")
    if request.turn_number == 1:
        code = "print(fd('name:logs/web/old.log').count('old'), sum(t.kind == 'text' for t in fds()))"
        return call("run_python", code=code.replace(".count('old')", ".total_lines"))
    return say(f"It says: {element(request.last_text(), 'python_result').body}")


def test_ask_tells_the_model_what_a_folder_has_and_offers_it_as_a_directory(command, logs):
    (logs / "more").mkdir()
    for number in range(60):
        (logs / "more" / f"{number}.txt").write_text("more\n")

    with ScriptedModel(model_of) as model:
        command.environment |= model.environ
        ended = command("ask", "How many?", "logs", "--name", "manuals")

    assert (ended.code, ended.out) == (0, "It says: 50000 64\n"), ended.err
    assert "fdstore: 4 names left out: 2 hidden, 1 link, 1 by .gitignore\n" in ended.err
    asked = json.dumps(model.requests[0].messages)
    assert "- directly in name:logs/: 2 contents, 2 of them bytes, 0 characters in 0 lines" in asked
    assert "- name:logs/more/: 60 texts, 300 characters in 60 lines" in asked
    assert "- name:logs/web/all.tar.gz/a/: 3 contents, 1 of them bytes, 8 characters in 2 lines" in asked
    assert set(model.requests[0].tools) >= {"read_fd", "search_fd", "run_python", "list_fds"}
    listed = model.requests[1].last_text()
    assert "name:logs/web/access.log sealed" in listed
    assert "name:logs/more/" not in listed


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ["bad.log"],
            1,
            "byte 1025 is not UTF-8 (invalid start byte); name its encoding, as --encoding latin-1, or ",
        ),
        (["bad.log", "--errors", "backslashreplace"], 0, ""),
        (["bad.log", "--encoding", "latin-1"], 0, ""),
        (
            ["wide.log"],
            1,
            "name it with --encoding utf-16, or convert it: iconv -f utf-16 -t utf-8 wide.log | ",
        ),
        (["wide.log", "--encoding", "utf-16"], 0, ""),
        (["bad.log", "--encoding", "none"], 2, "is not an encoding"),
        (["bytes"], 1, "there is no text in what was named"),
    ],
)
def test_ask_takes_texts_with_bad_bytes_and_in_other_encodings(command, tmp_path, words, code, said):
    (tmp_path / "bad.log").write_bytes(b"a line\n" * 146 + b"xy\xff\n" + b"a line\n" * 100)
    (tmp_path / "wide.log").write_text("a line\n" * 100, "utf-16")
    (tmp_path / "bytes").mkdir()
    (tmp_path / "bytes" / "noise").write_bytes(NOISE)
    (tmp_path / "bytes" / "more").write_bytes(NOISE)

    with ScriptedModel(lambda request: say("Read.")) as model:
        command.environment |= model.environ
        ended = command("ask", "Why?", *words)

    assert ended.code == code, ended.err
    assert said in ended.err
    assert ended.out == ("Read.\n" if code == 0 else "")


def test_an_answer_over_an_archive_with_odd_members_has_the_exit_code_1(command, tmp_path):
    (tmp_path / "odd.tar").write_bytes(tar_of(("../up", b"x"), ("good", b"good\n")))

    with ScriptedModel(lambda request: say("Read.")) as model:
        command.environment |= model.environ
        ended = command("ask", "Why?", "odd.tar")

    assert (ended.code, ended.out) == (1, "Read.\n")
    assert "fdstore: left out: odd.tar/../up: its name holds '..'\n" in ended.err
