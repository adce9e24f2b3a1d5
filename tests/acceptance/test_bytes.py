"""Bytes at the command line: stored, shown and read back exactly."""

from __future__ import annotations

import base64
import random
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from click.testing import CliRunner

from fdstore.cli import cli
from tests.waiting import PATIENCE_S

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + random.Random(1).randbytes(200_000)


DATABASE = b"SQLite format 3\0\x10\x00\xff" + PNG

FILES = {
    "photo.png": (PNG, "image/png", "photo.png is not UTF-8, stored as bytes (image/png, 200.0 kB)"),
    "notes.sqlite": (
        DATABASE,
        "application/vnd.sqlite3",
        "to store the text in it: sqlite3 notes.sqlite .dump | fdstore put triage -",
    ),
    "notes": ("one\n".encode("utf-16"), "application/octet-stream", "as text: --encoding utf-16"),
    "latin": (
        b"caf\xe9\n",
        "application/octet-stream",
        "if it is text: --encoding latin-1, or --text to see ",
    ),
    "late": (
        b"a\n" * 500_000 + b"\xff\0",
        "application/octet-stream",
        "late is not UTF-8, stored as bytes (",
    ),
}
"""File name -> its content, media type, and what is said on stderr."""


def test_what_is_not_utf_8_is_stored_as_bytes_and_read_back_exactly(command, store, tmp_path):
    for name, (data, _, _) in FILES.items():
        (tmp_path / name).write_bytes(data)

    made = command("put", "triage", *FILES)
    command("put", "triage", "-", stdin=PNG)
    exported = command("export", "triage", "fd:2", "out")

    proc = store.process("triage")
    assert (made.code, made.lines) == (0, ["fd:1", "fd:2", "fd:3", "fd:4", "fd:5"])
    for line, found, (name, (data, media_type, said)) in zip(
        made.err.splitlines(), proc.list(), FILES.items(), strict=False
    ):
        assert said in line
        assert (found.kind, found.media_type, found.source) == ("bytes", media_type, name)
        assert proc.read_bytes(found.fd) == data
    assert made.err.count("\n") == 5
    assert command("cat", "triage", "fd:1").raw == PNG
    assert exported.out.startswith(f"{len(DATABASE):,} bytes written to out (")
    assert (tmp_path / "out").read_bytes() == proc.read_bytes("fd:2")
    assert (proc.stat("fd:6").media_type, proc.read_bytes("fd:6")) == ("image/png", PNG)


@pytest.mark.thorough("several commands, one after the other")
def test_the_advice_for_a_database_stores_its_text_under_the_same_name(command, store, tmp_path):
    with closing(sqlite3.connect(tmp_path / "a db")) as made, made:
        made.execute("CREATE TABLE people (name)")

    said = command("put", "triage", "a db", "--name", "the people").err
    advice = said.partition("in it: ")[2].strip()
    (tmp_path / "sqlite3").write_text(f"#!{sys.executable}\nprint('CREATE TABLE people (name);')\n")
    (tmp_path / "sqlite3").chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", advice.replace("fdstore", f"{shlex.quote(sys.executable)} -m fdstore")],
        env={**command.environment, "PATH": f"{tmp_path}:{command.environment['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        timeout=PATIENCE_S,
    )

    assert advice == "sqlite3 'a db' .dump | fdstore put triage - --name 'the people'"
    assert (done.returncode, done.stdout, done.stderr) == (0, b"name:the people\n", b"")
    assert store.process("triage").read("name:the people").text == "CREATE TABLE people (name);\n"


def test_the_first_64_kb_of_a_pipe_decide(command, store):
    begins_as_text = b"a" * 65_535 + "\u00e9".encode()

    split = command("put", "triage", "-", stdin=begins_as_text)
    late = command("put", "triage", "-", stdin=begins_as_text + b"\xff")
    forced = command("put", "triage", "-", "--bytes", stdin=begins_as_text + b"\xff")
    short = command("put", "triage", "-", stdin=b"caf\xc3")
    escaped = command("put", "triage", "-", "--errors", "backslashreplace", stdin=b"\xff")

    kinds = [each.kind for each in store.process("triage").list()]
    assert [each.code for each in (split, late, forced, short, escaped)] == [0, 1, 0, 0, 0]
    assert "standard input: byte 65538 is not UTF-8 " in late.err
    assert "with --bytes" in late.err
    assert (forced.err, kinds) == ("", ["text", "bytes", "bytes", "text"])


def test_a_redirected_file_is_begun_again_where_it_stood(command, store, tmp_path):
    (tmp_path / "mixed").write_bytes(b"head\n" + b"a\n" * 100_000 + b"\xff")

    with (tmp_path / "mixed").open("rb", buffering=0) as given:
        given.seek(5)
        with command.start("put", "triage", "-", "--media-type", "Image/X-Mine", stdin=given) as putting:
            out, _ = putting.communicate(timeout=PATIENCE_S)

    found = store.process("triage").stat("fd:1")
    assert out == b"fd:1\n"
    assert (found.kind, found.bytes, found.media_type) == ("bytes", 200_001, "image/x-mine")


def test_bytes_are_shown_as_what_they_are(command, proc):
    proc.create(PNG, media_type="image/png", source="camera")

    stat = dict(line.split(maxsplit=1) for line in command("stat", "triage", "1").lines)
    narrow = command.on_terminal("ls", "triage", columns=80)
    pieces = command("cat", "triage", "1", "--json").documents

    assert stat["kind"] == "bytes"
    assert stat["type"] == "image/png"
    assert stat["size"] == f"200.0 kB ({len(PNG):,} bytes)"
    assert stat["pages"] == "4 of at most 65,536 bytes"
    assert not {"chars", "lines"} & set(stat)
    assert all(len(line) <= 80 for line in narrow.lines)
    assert "200.0 kB      -" in narrow.lines[1]
    assert "image/png  camera" in narrow.lines[1]
    assert b"".join(base64.b64decode(each["base64"]) for each in pieces) == PNG


def test_reading_bytes_as_text_is_an_error_that_names_the_way(command, proc):
    proc.create(PNG, media_type="image/png")

    for words in (
        "read triage 1",
        "search triage 1 x",
        "tail triage 1",
        "tail triage 1 -f",
        "cat triage 1#L1-2",
    ):
        ended = CliRunner().invoke(cli, words.split(), env=command.environment)

        assert (ended.exit_code, ended.stdout) == (2 if words.startswith("search") else 1, "")
        assert ended.stderr == (
            "fdstore: not_text: fd:1 is image/png (200.0 kB), not text; write it to a file with fdstore "
            "export, or pass it to a command with fdstore cat or fdstore pipe\n"
        )


def test_a_terminal_gets_bytes_only_with_raw(command, proc):
    proc.create(b"\xff\x07", media_type="image/png")

    refused = command.on_terminal("cat", "triage", "1")
    raw = command.on_terminal("cat", "triage", "1", "--raw")

    assert (refused.code, refused.raw) == (1, b"")
    assert refused.err.startswith("fdstore: not_text: fd:1 is image/png (2 B), not text; ")
    assert "> FILE" in refused.err
    assert (raw.code, raw.raw) == (0, b"\xff\x07")


def test_what_arrives_first_decides_what_a_live_stream_holds(command, store):
    decided = command("put", "triage", "-", "--stream", stdin=b"\x1f\x8b\x08\xff")
    forced = command("put", "triage", "-", "--stream", "--bytes", stdin=b"text")
    empty = command("put", "triage", "-", "--stream", stdin=b"")

    assert [ended.code for ended in (decided, forced, empty)] == [0, 0, 0]
    assert (decided.out, forced.err, empty.err) == ("fd:1\n", "", "")
    assert decided.err.startswith("fdstore: standard input is gzip, stored as bytes (application/")
    proc = store.process("triage")
    assert [(d.kind, d.state) for d in proc.list()] == [("bytes", "sealed")] * 2 + [("text", "sealed")]
    assert (proc.read_bytes(1), proc.read_bytes(2)) == (b"\x1f\x8b\x08\xff", b"text")
