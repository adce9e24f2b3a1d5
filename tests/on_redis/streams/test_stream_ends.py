"""Ends of streams: EOF, failure, limits, fences, lost replies and lost writers."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import DamagedRecord, Fenced, QuotaExceeded, StreamBroken, StreamClosed
from fdstore.model.records import TreeLimits
from fdstore.store.processes import leases, processes
from fdstore.store.streams import streams
from tests.on_redis.child_agents import claim
from tests.on_redis.followers import Reader, RepeatingStore, key_of, stored

# --- the end


def test_the_slice_and_the_descriptor_show_the_exit_code(proc: Process) -> None:
    with proc.open_stream() as out:
        out.write("text")
        out.end(3)
        out.end(0)

    assert proc.stat(out.fd).exit_code == proc.read(out.fd).exit_code == 3
    assert proc.read(out.fd).eof


def test_following_a_failed_stream_yields_all_text_and_then_the_reason(proc: Process) -> None:
    out = proc.open_stream(page_size=4)
    reader = Reader(proc, out.fd)

    out.write("one\ntw")
    out.fail("the disk is full")
    out.end()

    assert reader.done() == "one\ntw"
    assert isinstance(reader.error, StreamBroken)
    assert reader.error.args == (out.fd, "the disk is full")
    d, last = proc.stat(out.fd), proc.read(out.fd, start=2)
    assert (d.state, d.reason, d.exit_code) == ("broken", "the disk is full", None)
    assert (last.text, last.state, last.eof) == ("tw", "broken", False)
    assert last.reason == "the disk is full"


def test_an_exception_that_leaves_the_block_breaks_the_stream(proc: Process) -> None:
    def write() -> None:
        with proc.open_stream() as out:
            out.write("before")
            raise ZeroDivisionError("by zero")

    with pytest.raises(ZeroDivisionError):
        write()

    d = proc.stat("fd:1")
    assert (d.state, d.chars, d.reason) == ("broken", 6, "ZeroDivisionError: by zero")


def test_an_ended_stream_accepts_no_more_text(proc: Process) -> None:
    out = proc.open_stream()
    out.end()

    with pytest.raises(StreamClosed, match="sealed"):
        out.write("late")
    out.flush()


def test_an_end_over_a_damaged_record_is_not_tried_again(proc: Process, execute: Any) -> None:
    others = set(threading.enumerate())
    out = proc.open_stream(source="build")
    out.write("compiling\n")
    out.flush()
    execute("HSET", "fdstore:{triage}:triage:fd:1", "pages", "x")
    out.write("linking\n")

    with pytest.raises(DamagedRecord):
        out.end()

    assert out.is_over
    assert not [
        each for each in threading.enumerate() if each.name == f"stream {out.fd}" and each not in others
    ]
    execute("FLUSHALL")


def test_a_stream_without_holders_is_removed_and_accepts_no_more_text(proc: Process, execute: Any) -> None:
    out = proc.open_stream()
    out.write("one")
    out.flush()

    proc.close(out.fd)

    out.write("two")
    with pytest.raises(StreamClosed, match="closed"):
        out.flush()
    with pytest.raises(StreamClosed):
        out.end()
    assert execute("HGET", "fdstore:{triage}", "bytes") == b"0"


def test_a_stream_closed_by_its_writer_stays_while_another_process_holds_it(proc: Process) -> None:
    out = proc.open_stream()
    child = proc.child([out.fd])
    reader = Reader(child, out.fd)

    proc.close(out.fd)
    out.write("still ")
    out.end()

    assert reader.done() == "still "
    assert child.stat(out.fd).state == "sealed"


@pytest.mark.parametrize(("state", "reason"), [("exited", "writer_lost"), ("cancelled", "cancelled")])
def test_ending_a_process_breaks_its_open_streams(
    store: Store, proc: Process, state: Any, reason: str
) -> None:
    child = proc.child()
    out = child.open_stream()
    held = child.child([out.fd])
    reader = Reader(held, out.fd)
    out.write("half")
    out.flush()

    store.run(processes.end(child.handle, state, exit_code=None))

    assert reader.done() == "half"
    assert isinstance(reader.error, StreamBroken)
    assert reader.error.reason == reason
    with pytest.raises(Fenced, match="has ended"):
        out.end()


# --- limits and fences


def test_exceeding_the_tree_limit_breaks_the_stream(store: Store) -> None:
    proc = store.process("small", limits=TreeLimits(tree_bytes=100))
    out = proc.open_stream()
    out.write("x" * 90)
    out.flush()
    reader = Reader(proc, out.fd)

    out.write("y" * 11)
    with pytest.raises(QuotaExceeded, match="tree_bytes"):
        out.flush()

    assert reader.done() == "x" * 90
    assert isinstance(reader.error, StreamBroken)
    assert proc.stat(out.fd).reason == "quota_exceeded"
    with pytest.raises(QuotaExceeded):
        out.write("z")
    out.fail("no room")
    assert proc.stat(out.fd).reason == "quota_exceeded"


def test_a_stream_counts_as_a_content_of_the_tree(store: Store) -> None:
    proc = store.process("small", limits=TreeLimits(tree_fds=1))

    with proc.open_stream(), pytest.raises(QuotaExceeded, match="tree_fds"):
        proc.open_stream()


def test_another_writer_of_the_same_stream_is_fenced(store: Store, proc: Process) -> None:
    with proc.open_stream() as out:
        out.write("mine")
        out.flush()
        intruder = store.run(streams.resume(proc.handle, out.fd))
        intruder.put("not mine")

        with pytest.raises(Fenced, match="another writer"):
            store.run(intruder.store())

    assert proc.read(out.fd).text == "mine"


def test_a_replaced_attempt_stores_nothing(store: Store) -> None:
    root = store.process("agent")
    store.run(processes.launch(root.handle, "{}"))
    old = Process(store, claim(store, "agent"))
    out = old.open_stream()
    out.write("by the first attempt\n")
    out.flush()

    store.run(leases.return_to_queue(old.handle))
    claim(store, "agent")

    out.write("too late")
    with pytest.raises(Fenced, match="attempt 1 no longer runs it"):
        out.flush()
    with pytest.raises(Fenced):
        out.fail("whatever")
    assert root.read(out.fd).text == "by the first attempt\n"


def test_the_output_stream_of_a_process_continues_with_its_next_attempt(store: Store, execute: Any) -> None:
    root = store.process("agent")
    store.run(processes.launch(root.handle, "{}"))
    text = "".join(f"漢字 {number}\n" for number in range(2000))
    first = claim(store, "agent")
    fd = store.run(streams.open_stream(first, "draft", 25, lease_s=None, call_id="c0")).fd
    again = store.run(streams.open_stream(first, "draft", 25, lease_s=None, call_id="c0"))
    assert again.fd == fd
    for number, start in enumerate(range(0, len(text) // 2, 3000)):
        appender = store.run(streams.resume(first, fd))
        store.run(appender.store_once(text[start : start + 3000], f"c{number + 1}"))
    half = root.read(fd, read_all=True).text
    store.run(leases.return_to_queue(first))
    second = claim(store, "agent")

    resumed = store.run(streams.resume(second, fd))
    # repeating the first attempt's last call changes nothing
    store.run(resumed.store_once("x" * 3000, f"c{number + 1}"))
    assert root.read(fd, read_all=True).text == half

    store.run(store.run(streams.resume(second, fd)).store_once(text[len(half) :], "last"))
    store.run(store.run(streams.resume(second, fd)).seal(0))

    whole = root.create(text, page_size=25)
    assert stored(execute, key_of(root, fd)) == stored(execute, key_of(root, whole.fd))
    assert root.stat(fd).state == "sealed"
    with pytest.raises(StreamClosed):
        store.run(streams.resume(second, fd))


# --- replies that are lost


def test_every_stream_request_is_idempotent(store: Store, proc: Process) -> None:
    repeating = RepeatingStore(store, times=2)
    appender = repeating.run(streams.open_stream(proc.handle, "stream", 10))
    for number in range(30):
        appender.put(f"line {number}\n")
        repeating.run(appender.store())
    repeating.run(appender.renew())
    repeating.run(appender.seal(0))

    assert proc.read(appender.fd, read_all=True).text == "".join(f"line {number}\n" for number in range(30))
    assert [d.fd for d in proc.list()] == ["fd:1"]
