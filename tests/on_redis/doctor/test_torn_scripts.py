"""Half-executed scripts, left by a truncated log after a crash: readers and writers detect them and continue.

tests/chaos/test_torn_log.py truncates real logs; here the partial states are written directly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import NotFound, StoreLostData, StreamBroken, StreamClosed
from fdstore.model.records import Descriptor
from fdstore.store.processes import leases, process_records, processes
from fdstore.store.streams import streams
from fdstore.store.streams.streams import StreamAppender
from tests.thorough import thorough

LONG = "".join(f"line {n}\n" for n in range(300))
"""In pages of 10 characters more than the 256 of one field of the index."""


def stream_of(store: Store, proc: Process, text: str, page_size: int = 10) -> StreamAppender:
    appender = store.run(streams.open_stream(proc.handle, "stream", page_size, lease_s=None))
    add(store, appender, text)
    return appender


def add(store: Store, appender: StreamAppender, text: str) -> None:
    appender.put(text)
    store.run(appender.store())


def key(proc: Process, fd: str) -> str:
    return f"fdstore:{{t}}:{proc.id}:{fd}"


@pytest.fixture
def proc(store: Store, execute: Any) -> Iterator[Process]:
    yield store.process("t")
    execute("FLUSHALL")  # half-executed scripts leave keys that do not match the table


def half_append(
    execute: Any, store: Store, proc: Process, fd: str, text: str, *, index: bool, pages: bool = True
) -> None:
    """Append a piece, then undo the writes missing after a truncated script: the totals and what follows."""
    names = ["", ":pages", ":index"]
    taken = {name: execute("DUMP", key(proc, fd) + name) for name in names}
    add(store, store.run(streams.resume(proc.handle, fd)), text)
    for name in names:
        if name == "" or (name == ":index" and not index) or (name == ":pages" and not pages):
            execute("RESTORE", key(proc, fd) + name, 0, taken[name], "REPLACE")


PIECES = ["more\nand more\nof it", "\n", "漢字\n漢", "a\nb\n" * 200]


@pytest.mark.parametrize("index", [False, True], ids=["pages", "pages and index"])
@pytest.mark.parametrize("ended", [False, True], ids=["open", "ended"])
@pytest.mark.parametrize("before", ["so\nfar", "", "ten chars!"])
@pytest.mark.parametrize("piece", PIECES)
def test_a_piece_missing_from_the_totals_is_not_returned(
    store: Store, proc: Process, execute: Any, before: str, piece: str, ended: bool, index: bool
) -> None:
    fd = stream_of(store, proc, before).fd
    half_append(execute, store, proc, fd, piece, index=index)
    if ended:
        execute("HSET", key(proc, fd), "state", "sealed", "exit_code", 0)

    assert_reads(store, proc, fd, before)


def assert_reads(store: Store, proc: Process, fd: str, text: str) -> None:
    """Assert that every way of reading returns this text and that the metadata matches."""
    whole = store.process(proc.id).read(fd, read_all=True)
    d = store.process(proc.id).stat(fd)
    assert (whole.text, whole.total_chars, whole.eof) == (text, len(text), d.state == "sealed")
    by_page = ""
    warm = store.process(proc.id)
    for number in range(1, d.pages + 1):
        cold = store.process(proc.id).read(fd, start=number)
        assert cold == warm.read(fd, start=number) == warm.read(fd, start=number)
        assert cold.chars == (f"{len(by_page) + 1}-{len(by_page + cold.text)}" if cold.text else "0-0")
        by_page += cold.text
    assert by_page == text
    lines = text.splitlines(keepends=True)
    assert d.lines == len(lines)
    if lines:
        assert store.process(proc.id).read(fd, mode="line", start=len(lines)).text == lines[-1]
        assert store.process(proc.id).read(fd, mode="line", start=1, count=10**6).text == text
        assert store.process(proc.id).read(fd, mode="char", start=len(text), count=9).text == text[-1]
    assert store.process(proc.id).search(fd, "$").lines_searched == len(lines)
    assert store.process(proc.id).extract(fd).chars == len(text)


@pytest.mark.parametrize("index", [True, *thorough("without the index", False)])
@pytest.mark.parametrize("piece", ["more\nand more\nof it", "a\nb\n" * 200, "x" * 9000])
@pytest.mark.parametrize("after", ["!", "other\ntext\n", *thorough("a long text", LONG)])
def test_a_writer_overwrites_a_half_stored_piece(
    store: Store, proc: Process, execute: Any, piece: str, after: str, index: bool
) -> None:
    appender = stream_of(store, proc, "so\nfar")
    half_append(execute, store, proc, appender.fd, piece, index=index)

    add(store, appender, after)
    assert_reads(store, proc, appender.fd, "so\nfar" + after)
    half_append(execute, store, proc, appender.fd, piece, index=index)
    add(store, store.run(streams.resume(proc.handle, appender.fd)), after)

    assert_reads(store, proc, appender.fd, "so\nfar" + after * 2)
    stored = execute("HGETALL", f"{key(proc, appender.fd)}:pages")
    assert execute("HGETALL", f"{key(proc, proc.create(LONG, page_size=10).fd)}:pages")
    assert len(stored) // 2 == proc.stat(appender.fd).pages


def test_a_child_continues_the_output_stream_created_with_it(
    store: Store, proc: Process, execute: Any
) -> None:
    output = processes.ChildStream("said", 10)
    child = Process(store, store.run(processes.create_child(proc.handle, [], output=output)))
    appender = streams.appender_for_output(child.handle, "fd:1", 10)
    add(store, appender, "so\nfar")
    pages = execute("DUMP", f"{key(child, 'fd:1')}:pages")
    totals = execute("DUMP", key(child, "fd:1"))
    add(store, appender, " and more\nof it")
    assert execute("DUMP", f"{key(child, 'fd:1')}:pages") != pages
    execute("RESTORE", key(child, "fd:1"), 0, totals, "REPLACE")

    resumed = store.run(streams.resume_output(child.handle, "fd:1"))
    assert resumed is not None
    add(store, resumed, "!")

    assert proc.read("fd:1", read_all=True).text == "so\nfar!"


@pytest.mark.thorough("a long piece")
@pytest.mark.parametrize("guarded", [True, *thorough("without a guard", False)])
def test_pages_set_aside_by_a_half_stored_long_piece_are_restored(
    store: Store, proc: Process, execute: Any, guarded: bool
) -> None:
    appender = stream_of(store, proc, LONG)
    record = key(proc, appender.fd)
    for go_on in (
        lambda: assert_reads(store, proc, appender.fd, LONG),
        lambda: add(store, appender, "a little"),
        lambda: add(store, appender, LONG),
    ):
        execute("RENAME", f"{record}:pages", f"{record}:lent")
        if guarded:
            execute("SET", f"{record}:pages", "")

        go_on()

        assert not execute("EXISTS", f"{record}:lent")
    assert_reads(store, proc, appender.fd, LONG + "a little" + LONG)


def test_text_written_later_is_kept_when_pages_are_restored(
    store: Store, proc: Process, execute: Any
) -> None:
    appender = stream_of(store, proc, LONG)
    record, pages = key(proc, appender.fd), proc.stat(appender.fd).pages
    old = execute("DUMP", f"{record}:pages")
    add(store, appender, "written since\n")
    newer = [
        part
        for number in range(pages, proc.stat(appender.fd).pages + 1)
        for part in (number, execute("HGET", f"{record}:pages", number))
    ]
    execute("UNLINK", f"{record}:pages")
    execute("RESTORE", f"{record}:lent", 0, old)
    execute("HSET", f"{record}:pages", *newer)

    assert_reads(store, proc, appender.fd, LONG + "written since\n")


@pytest.mark.parametrize("gone", ["some pages", "the last page", "all pages"])
def test_a_stream_that_lost_pages_is_an_error_for_readers_and_writers(
    store: Store, proc: Process, execute: Any, gone: str
) -> None:
    appender = stream_of(store, proc, LONG)
    last = proc.stat(appender.fd).pages
    pages = f"{key(proc, appender.fd)}:pages"
    if gone == "all pages":
        execute("UNLINK", pages)
    else:
        execute("HDEL", pages, *([last] if gone == "the last page" else range(3, 50)))

    for read in (
        lambda: proc.read(appender.fd),
        lambda: proc.read(appender.fd, read_all=True),
        lambda: proc.search(appender.fd, "line"),
        lambda: store.process("t").read(appender.fd, start=last),
        lambda: add(store, appender, "more"),
        lambda: add(store, appender, LONG),
    ):
        with pytest.raises(StoreLostData, match=appender.fd):
            read()


def test_a_stream_of_an_ended_or_missing_process_is_broken(store: Store, proc: Process, execute: Any) -> None:
    made = processes.create_child(proc.handle, [], state="ready", output=processes.ChildStream("said", 100))
    child = store.run(made)

    execute("UNLINK", child.keys.record)

    with pytest.raises(StreamBroken, match="writer_lost"):
        list(proc.follow("fd:1"))


def test_ending_a_process_does_not_break_sealed_contents(store: Store, proc: Process, execute: Any) -> None:
    child = proc.child()
    made = child.create("sealed")
    execute("SADD", f"{child.handle.keys.record}:writes", made.fd[3:])  # as left by a half-created stream
    twin = child.fork()

    child.end()

    found = twin.read(made.fd)
    assert (found.text, found.state) == ("sealed", "sealed")


def test_the_number_of_a_half_created_stream_can_be_reused_for_a_text(
    store: Store, proc: Process, execute: Any
) -> None:
    appender = stream_of(store, proc, "x" * 30)
    half = {name: execute("DUMP", key(proc, appender.fd) + name) for name in ("", ":pages", ":index")}
    proc.close(appender.fd)
    execute("HSET", proc.handle.keys.record, "next_fd", 1)
    for name, value in half.items():
        execute("RESTORE", key(proc, appender.fd) + name, 0, value)

    made = store.process("t").create("a text\nof two lines", page_size=10)

    assert made.fd == appender.fd
    assert_reads(store, proc, made.fd, "a text\nof two lines")


def test_the_number_of_a_half_created_text_can_be_reused_for_a_stream(
    store: Store, proc: Process, execute: Any
) -> None:
    proc.create("first")
    made = proc.extract("fd:1")
    half = {name: execute("DUMP", key(proc, made.fd) + name) for name in ("", ":pages", ":index")}
    proc.close(made.fd)
    execute("HSET", proc.handle.keys.record, "next_fd", 2)
    for name, value in half.items():
        if value is not None:
            execute("RESTORE", key(proc, made.fd) + name, 0, value)

    appender = stream_of(store, store.process("t"), "so\nfar")

    found: Descriptor = store.process("t").stat(appender.fd)
    assert (appender.fd, found.origin, found.state) == (made.fd, None, "open")
    assert_reads(store, store.process("t"), appender.fd, "so\nfar")


def test_a_new_child_inherits_nothing_from_a_half_created_one(
    store: Store, proc: Process, execute: Any
) -> None:
    proc.create("not for the child")
    record = f"{proc.handle.keys.record}.1"
    execute("HSET", f"{record}:fds", "fd:1", "t/1")
    execute("RPUSH", f"{record}:journal", '{"brief": "of the half"}')

    child = processes.create_child(proc.handle, [], state="ready", brief='{"brief": "its own"}')
    handle = store.run(child)

    assert Process(store, handle).list() == []
    claimed = store.run(leases.claim(handle.keys, "a worker"))
    assert claimed.journal == [b'{"brief": "its own"}']


def test_a_child_number_without_a_record_does_not_stop_a_kill(
    store: Store, proc: Process, execute: Any
) -> None:
    child = proc.child()
    execute("HINCRBY", proc.handle.keys.record, "next_child", 1)

    done = store.run(processes.cancel("fdstore", "t"))

    assert done.cancelled == ("t", child.id)
    with pytest.raises(NotFound):
        store.run(process_records.record("fdstore", "t.2"))


def test_leftover_wake_ups_of_a_lost_text_do_not_stop_a_writer(
    store: Store, proc: Process, execute: Any
) -> None:
    appender = stream_of(store, proc, "so far")
    execute("XADD", f"{key(proc, appender.fd)}:events", "1000-1", "chars", 1000)

    add(store, appender, " and more")
    add(store, appender, " and more")
    execute("XADD", f"{key(proc, appender.fd)}:events", "1000-1", "chars", 1000)
    store.run(appender.seal(0))

    assert "".join(proc.follow(appender.fd)) == "so far and more and more"
    with pytest.raises(StreamClosed):
        add(store, appender, "late")


def test_a_later_end_discards_the_result_of_a_half_stored_end(
    store: Store, proc: Process, execute: Any
) -> None:
    child = proc.child()
    execute("HSET", child.handle.keys.record, "exit_code", 0, "answer", "of the half", "answer_fd", "fd:9")

    store.run(processes.cancel("fdstore", child.id))

    ended = store.run(process_records.answer_of("fdstore", child.id))
    assert (ended.record.state, ended.record.exit_code, ended.text, ended.fd) == ("cancelled", None, "", None)
