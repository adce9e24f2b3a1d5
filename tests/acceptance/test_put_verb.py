"""`fdstore put`: several files, other encodings, live text, and interruptions."""

from __future__ import annotations

import signal

import pytest
import redis

import fdstore
from fdstore.local.redis_server import PrivateServer
from tests.refusals import lasting, refused
from tests.thorough import thorough
from tests.waiting import PATIENCE_S, wait_until


def test_several_files_are_stored_in_order_and_one_failure_does_not_prevent_the_others(
    command, store, tmp_path
):
    (tmp_path / "one.log").write_text("one\n")
    (tmp_path / "two.log").write_bytes(b"caf\xe9\n")
    (tmp_path / "three.log").write_text("three\n")

    ended = command("put", "triage", "one.log", "two.log", "three.log", "-", "--text", stdin=b"four\n")

    assert (ended.code, ended.lines) == (1, ["fd:1", "fd:2", "fd:3"])
    assert ended.err == (
        "fdstore: invalid_argument: two.log: byte 4 is not UTF-8 (invalid continuation byte); name its "
        "encoding, as --encoding latin-1, keep such bytes as \\xNN with --errors backslashreplace, or store "
        "it as it is with --bytes\n"
    )
    assert [each.source for each in store.process("triage").list()] == ["one.log", "three.log", "stdin"]


def test_a_missing_file_prevents_storing_all_files(command, store, tmp_path):
    (tmp_path / "one.log").write_text("one\n")

    ended = command("put", "triage", "one.log", "nope.log")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("fdstore: file_not_found: ")
    assert store.processes() == []


@pytest.mark.parametrize(
    "words",
    [
        ["a", "b", "--source", "x"],
        ["a", "b", "--stream"],
        ["-", "-"],
        ["a", "--encoding", "base64"],
        ["a", "--encoding", "no-such"],
        ["a", "--page-size", "0"],
        ["a", "b", "--name", "x"],
        ["a", "--if-absent"],
        ["a", "--name", "x#L1-2"],
        ["a", "--media-type", "png"],
        ["a", "--bytes", "--text"],
        ["a", "--bytes", "--encoding", "utf-8"],
        ["a", "--bytes", "--errors", "strict"],
        ["a", "--stream", "--media-type", "text/plain"],
        ["a", "--stream", "--name", "x"],
    ],
)
def test_put_refuses_conflicting_options(command, store, tmp_path, words):
    for name in "ab":
        (tmp_path / name).write_text(name)

    ended = command("put", "triage", *words)

    assert ended.code == 2
    assert ended.err.startswith("Usage: ")
    assert store.processes() == []


def test_a_text_in_another_encoding_is_stored_as_text(command, store, tmp_path):
    text = "naïve 漢字\r\n" * 5000
    (tmp_path / "marked").write_text(text, "utf-16", newline="")
    (tmp_path / "plain").write_text(text, "utf-16-le", newline="")

    command("put", "triage", "marked", "--encoding", "utf-16")
    command("put", "triage", "plain", "--encoding", "utf-16-le")
    command("put", "triage", "-", "--encoding", "latin-1", stdin=b"caf\xe9\n")

    proc = store.process("triage")
    assert [proc.read(fd, read_all=True).text for fd in (1, 2, 3)] == [text, text, "café\n"]


def test_utf_16_and_databases_are_recognized_and_a_remedy_is_named(command, store, tmp_path):
    (tmp_path / "notes").write_text("one\ntwo\n", "utf-16")
    (tmp_path / "bare").write_text("one\ntwo\n", "utf-16-le")
    database = b"SQLite format 3\0\x10\x00\xff"
    (tmp_path / "a db").write_bytes(database)

    marked = command("put", "triage", "notes", "--text")
    packed = command("put", "triage", "a db", "--text")
    piped = command("put", "triage", "-", "--text", stdin=database)
    bare = command("put", "triage", "bare")

    assert (marked.code, packed.code, piped.code, bare.code) == (1, 1, 1, 0)
    assert "notes: this is UTF-16, not UTF-8; put it with --encoding utf-16\n" in marked.err
    advice = "this is a SQLite database; store the text in it: sqlite3 {} .dump | fdstore put triage -\n"
    assert advice.format("'a db'") in packed.err
    assert f"standard input: {advice.format('FILE')}" in piped.err
    assert bare.err.startswith("fdstore: warning: bare looks like UTF-16-LE; ")
    assert store.process("triage").read(1).text == "one\ntwo\n".encode("utf-16-le").decode()


def test_text_piped_into_a_stream_reaches_its_readers_live(command, store):
    with command.start("put", "triage", "-", "--stream", "--source", "make") as putting:
        assert putting.stdout.readline() == b"fd:1\n"
        putting.stdin.write("compiling naïve.c\n".encode() + b"caf\xc3")
        putting.stdin.flush()
        with command.start("tail", "triage", "1", "-f") as following:
            assert following.stdout.readline() == "compiling naïve.c\n".encode()
            while_open = store.process("triage").stat(1)
            putting.stdin.write(b"\xa9\n")
            out, err = putting.communicate(timeout=PATIENCE_S)
            rest = following.stdout.read()

    assert (while_open.state, while_open.source) == ("open", "make")
    assert (putting.returncode, out, err) == (0, b"", b"")
    assert (following.returncode, rest) == (0, "café\n".encode())
    assert store.process("triage").stat(1).state == "sealed"


@pytest.mark.parametrize("kind", ["NOREPLICAS", *thorough("another kind", "OOM")])
def test_a_live_put_waits_for_a_redis_that_takes_no_writes(command, store, kind):
    with PrivateServer() as server, fdstore.connect(server.url, store.prefix) as refusing:
        with command.start("put", "triage", "-", "--stream", "--url", server.url) as putting:
            assert putting.stdout.readline() == b"fd:1\n"
            with refused(server, kind):
                putting.stdin.write(b"during\n")
                putting.stdin.close()
                lasting(1.5)
                assert putting.poll() is None
            assert putting.wait(PATIENCE_S) == 0

        made = refusing.process("triage").read(1)
        assert (made.text, made.eof) == ("during\n", True)


@pytest.mark.parametrize(
    ("number", "code", "reason"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "signal 15"),
        (signal.SIGHUP, 129, "signal 1"),
    ],
)
def test_a_signal_to_a_live_put_breaks_its_stream_immediately(command, store, number, code, reason):
    with command.start("put", "triage", "-", "--stream") as putting:
        putting.stdout.readline()
        putting.stdin.write(b"half\n")
        putting.stdin.flush()
        wait_until(lambda: store.process("triage").stat(1).chars == 5)
        putting.send_signal(number)
        _, err = putting.communicate(timeout=PATIENCE_S)

    found = store.process("triage").stat(1)
    assert (putting.returncode, err) == (code, b"")
    assert (found.state, found.reason, found.chars) == ("broken", reason, 5)


def test_a_killed_live_put_leaves_a_stream_whose_lease_expires(command, store):
    with command.start("put", "triage", "-", "--stream") as putting:
        putting.stdout.readline()
        putting.kill()
        putting.communicate(timeout=PATIENCE_S)

    with redis.Redis.from_url(store.url) as client:
        key = f"{store.prefix}:{{triage}}:triage:fd:1"
        left_s = float(client.hget(key, "writer_until")) - float(client.time()[0])
        # as if the lease had expired, and a reader had noticed, long ago
        client.hset(key, mapping={"writer_until": "1000000000", "doubt": "1000000000 1000000001"})
    assert 0 < left_s <= 31
    with pytest.raises(fdstore.errors.StreamBroken, match="writer_lost"):
        list(store.process("triage").follow(1))


def test_a_live_stream_breaks_on_invalid_utf8_unless_it_is_escaped(command, store):
    refused = command("put", "triage", "-", "--stream", "--text", stdin=b"good\ncaf\xe9\n")
    kept = command("put", "triage", "-", "--stream", "--errors", "backslashreplace", stdin=b"caf\xe9\n")

    first, second = store.process("triage").list()
    assert (refused.code, refused.out, kept.code) == (1, "fd:1\n", 0)
    assert "standard input: byte 9 is not UTF-8" in refused.err
    assert first.state == "broken"
    assert "byte 9 is not UTF-8" in first.reason
    assert (second.state, store.process("triage").read(2).text) == ("sealed", "caf\\xe9\n")


def test_a_live_put_with_json_reports_its_start_and_its_end(command):
    ended = command("put", "triage", "-", "--stream", "--json", stdin=b"one\n")

    began, done = ended.documents
    assert (began["fd"], began["state"], began["chars"]) == ("fd:1", "open", 0)
    assert (done["fd"], done["state"], done["chars"]) == ("fd:1", "sealed", 4)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_put_removes_its_staged_pages_immediately(command, store, number):
    with redis.Redis.from_url(store.url) as client, command.start("put", "triage", "-") as putting:
        for _ in range(10):
            putting.stdin.write(b"a line of some length\n" * 10_000)
        putting.stdin.flush()

        def staged() -> list[bytes]:
            return client.keys(f"{store.prefix}:*staging*")

        wait_until(lambda: staged() != [])
        putting.send_signal(number)
        _, err = putting.communicate(timeout=PATIENCE_S)
        left = staged()

    assert (putting.returncode, err, left) == (128 + number, b"", [])
