"""`fdstore export-run`: a run as one file that opens anywhere."""

from __future__ import annotations

import os

import pytest

from tests.on_redis.inspector.journals import SHORT, answer, converse
from tests.on_redis.inspector.run_page import Read

SECRET = "sk-4f9a77be"


def begin(store):
    """A run whose agent and files know a secret."""
    proc = store.process("triage")
    proc.create(f"token {SECRET}\n" * 50, source=f"curl {SECRET}")
    converse(proc, *SHORT, answer(f"It is {SECRET}.", ("t3", "put", {"key": SECRET})))
    return proc


def test_export_run_writes_one_page_and_says_what(command, store):
    begin(store).child()

    done = command("export-run", "triage", "triage.html")
    as_json = command("export-run", "triage", "again.html", "--json")

    html = (command.folder / "triage.html").read_text("utf-8")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("2 processes written to triage.html (")
    assert html.startswith("<!doctype html>")
    assert html.endswith("</html>\n")
    assert SECRET in Read(html).text
    size = (command.folder / "again.html").stat().st_size
    assert as_json.document == {
        "tree": "triage",
        "file_path": "again.html",
        "size_bytes": size,
        "processes": 2,
    }


def test_redacted_patterns_are_nowhere_in_the_file(command, store):
    begin(store)

    done = command(
        "export-run", "triage", "x.html", "--redact", "sk-[0-9a-f]+", "--redact", "(?i)MISSING comma"
    )
    piped = command("export-run", "triage", "-", "--redact", "sk-[0-9a-f]+")

    html = (command.folder / "x.html").read_text("utf-8")
    assert done.code == 0
    assert " places redacted)" in done.out
    assert "places were redacted" in html
    assert "sk-" not in html + piped.out
    assert "missing comma" not in html.lower()
    assert "missing comma" in piped.out
    assert (piped.code, piped.err, os.listdir(command.folder)) == (0, "", ["x.html"])


@pytest.mark.thorough("several commands, one after the other")
def test_an_existing_file_is_replaced_unless_that_is_not_wanted(command, store):
    begin(store)
    (command.folder / "x.html").write_text("old")

    kept = command("export-run", "triage", "x.html", "--no-clobber")
    before = (command.folder / "x.html").read_text()
    replaced = command("export-run", "triage", "x.html")

    assert (kept.code, before) == (1, "old")
    assert "leave out --no-clobber to replace it" in kept.err
    assert replaced.code == 0
    assert os.listdir(command.folder) == ["x.html"]


def test_what_cannot_be_exported_is_a_typed_error_and_leaves_no_file(command, store):
    begin(store)

    missing = command("export-run", "absent", "x.html")
    child = command("export-run", "triage.1", "x.html")
    pattern = command("export-run", "triage", "x.html", "--redact", "(a")
    nowhere = command("export-run", "triage", "no/such/x.html")

    assert [each.code for each in (missing, child, pattern, nowhere)] == [1, 1, 1, 1]
    assert missing.err.startswith("fdstore: not_found: ")
    assert "its tree has the name of its root, triage" in child.err
    assert "not an RE2 expression" in pattern.err
    assert os.listdir(command.folder) == []
