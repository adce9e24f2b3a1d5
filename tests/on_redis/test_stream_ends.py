"""How streams end: EOF, failure, limits, fences, lost replies and lost writers."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fdstore.client import Process, Store, StreamWriter
from fdstore.errors import (
    Fenced,
    QuotaExceeded,
    StoreUnavailable,
    StreamBroken,
    StreamClosed,
)
from fdstore.records import TreeLimits
from fdstore.store import leases, processes, streams
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore_workers.sweeper import sweep
from tests.children import Child
from tests.on_redis.followers import Reader, RepeatingStore, key_of, stored
from tests.waiting import wait_until

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
    first = store.run(leases.claim(root.handle.keys, "worker 1"))
    old = Process(store, ProcessHandle(root.handle.keys, root.handle.limits, first.attempt))
    out = old.open_stream()
    out.write("by the first attempt\n")
    out.flush()

    store.run(leases.return_to_queue(old.handle))
    store.run(leases.claim(root.handle.keys, "worker 2"))

    out.write("too late")
    with pytest.raises(Fenced, match="attempt 1 no longer runs it"):
        out.flush()
    with pytest.raises(Fenced):
        out.fail("whatever")
    assert root.read(out.fd).text == "by the first attempt\n"


def test_the_output_stream_of_a_process_continues_with_its_next_attempt(store: Store, execute: Any) -> None:
    root = store.process("agent")
    store.run(processes.launch(root.handle, "{}"))
    spaces = []
    text = "".join(f"漢字 {number}\n" for number in range(2000))
    for worker in ("worker 1", "worker 2"):
        attempt = store.run(leases.claim(root.handle.keys, worker)).attempt
        handle = ProcessHandle(process_keys("fdstore", "agent"), root.handle.limits, attempt)
        spaces.append(handle)
        if attempt == 1:
            fd = store.run(streams.open_stream(handle, "draft", 25, lease_s=None, call_id="c0")).fd
            again = store.run(streams.open_stream(handle, "draft", 25, lease_s=None, call_id="c0"))
            assert again.fd == fd
            for number, start in enumerate(range(0, len(text) // 2, 3000)):
                appender = store.run(streams.resume(handle, fd))
                store.run(appender.store_once(text[start : start + 3000], f"c{number + 1}"))
            half = root.read(fd, read_all=True).text
            store.run(leases.return_to_queue(handle))

    resumed = store.run(streams.resume(spaces[1], fd))
    # repeating the first attempt's last call changes nothing
    store.run(resumed.store_once("x" * 3000, f"c{number + 1}"))
    assert root.read(fd, read_all=True).text == half

    store.run(store.run(streams.resume(spaces[1], fd)).store_once(text[len(half) :], "last"))
    store.run(store.run(streams.resume(spaces[1], fd)).seal(0))

    whole = root.create(text, page_size=25)
    assert stored(execute, key_of(root, fd)) == stored(execute, key_of(root, whole.fd))
    assert root.stat(fd).state == "sealed"
    with pytest.raises(StreamClosed):
        store.run(streams.resume(spaces[1], fd))


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


def test_text_with_an_unknown_outcome_is_sent_again_with_the_next_flush(store: Store, proc: Process) -> None:
    repeating = RepeatingStore(store)
    out = StreamWriter(repeating.run, store.run(streams.open_stream(proc.handle, "stream")))
    out.write("one ")
    repeating.failing = 1
    with pytest.raises(StoreUnavailable):
        out.flush()

    out.write("two ")
    out.flush()
    out.end()

    assert proc.read(out.fd).text == "one two "


# --- writers that are lost


WRITER = """
import sys, fdstore, threading
proc = fdstore.connect(sys.argv[1]).process("triage")
out = proc.open_stream(lease_s=0.5)
out.write("stored\\n" * 1000)
out.flush()
print(out.fd, flush=True)
threading.Event().wait()
"""


@pytest.fixture
def lost_writer(redis_url: str, proc: Process) -> Iterator[Callable[[], str]]:
    """A process that writes a stream; calling the fixture kills it and returns the descriptor."""
    command = [sys.executable, "-c", WRITER, redis_url]
    with Child(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        fd = process.stdout.readline().strip()

        def kill() -> str:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return fd

        yield kill
        process.kill()


def test_a_writer_killed_with_sigkill_leaves_its_text_and_a_broken_stream(
    proc: Process, lost_writer: Callable[[], str]
) -> None:
    reader = Reader(proc, "fd:1")
    reader.wait_for("stored\n" * 1000)

    lost_writer()

    assert reader.done() == "stored\n" * 1000
    assert isinstance(reader.error, StreamBroken)
    assert reader.error.reason == "writer_lost"
    assert (proc.stat("fd:1").state, proc.read("fd:1", start=1).eof) == ("broken", False)


def expire_lease(proc: Process, execute: Any, fd: str) -> None:
    """Expire the lease of a stream's writer, as during an outage of Redis."""
    now = time.time()
    assert execute("HSET", key_of(proc, fd), "writer_until", f"{now - 1:.6f}") == 0


def test_a_writer_continues_after_an_outage_in_which_it_could_not_renew_its_lease(
    store: Store, proc: Process, execute: Any
) -> None:
    appender = store.run(streams.open_stream(proc.handle, "a test", 4096, lease_s=30.0))
    expire_lease(proc, execute, appender.fd)

    assert proc.stat(appender.fd).state == "open"  # the first check must not break it
    assert proc.read(appender.fd, read_all=True).state == "open"
    store.run(appender.renew())
    expire_lease(proc, execute, appender.fd)
    assert proc.stat(appender.fd).state == "open"  # another outage starts another grace period


def test_a_lease_that_was_not_renewed_in_time_breaks_the_stream(
    store: Store, proc: Process, execute: Any
) -> None:
    appender = store.run(streams.open_stream(proc.handle, "a test", 4096, lease_s=30.0))
    expire_lease(proc, execute, appender.fd)
    assert proc.stat(appender.fd).state == "open"
    doubted, until = execute("HGET", key_of(proc, appender.fd), "doubt").decode().split()
    assert 4 < float(until) - time.time() < 6

    execute("HSET", key_of(proc, appender.fd), "doubt", f"{doubted} {float(until) - 10:.6f}")

    assert proc.stat(appender.fd).state == "broken"
    assert execute("HMGET", key_of(proc, appender.fd), "writer_until", "lease", "doubt") == [None] * 3


@pytest.mark.parametrize("value", ["", "x", "x y", "nan", "-1", "1e400"])
def test_an_unreadable_lease_is_given_one_grace_period(
    store: Store, proc: Process, execute: Any, value: str
) -> None:
    appender = store.run(streams.open_stream(proc.handle, "a test", 4096, lease_s=0.2))
    execute("HSET", key_of(proc, appender.fd), "writer_until", value or "0", "lease", value)

    wait_until(lambda: proc.stat(appender.fd).state == "broken", 10)


def test_a_waiting_reader_gets_the_loss_of_the_writer(proc: Process, lost_writer: Callable[[], str]) -> None:
    fd = lost_writer()

    found = proc.read(fd, read_all=True, wait=30)

    assert (found.text, found.state, found.eof) == ("stored\n" * 1000, "broken", False)


def test_the_sweep_breaks_an_abandoned_stream_without_readers(
    store: Store, proc: Process, lost_writer: Callable[[], str], execute: Any
) -> None:
    fd = lost_writer()

    def swept() -> bool:
        sweep(store, wake=lambda process: None)
        return bool(execute("HGET", key_of(proc, fd), "state") == b"broken")

    wait_until(swept, 10)
    assert execute("EXISTS", "fdstore:{triage}:writers") == 0


def test_an_idle_writer_keeps_its_lease(store: Store, proc: Process) -> None:
    out = proc.open_stream(lease_s=0.3)
    start = time.monotonic()

    def still_open() -> bool:
        assert proc.stat(out.fd).state == "open"
        for tree, content in store.run(streams.find_due("fdstore", ["triage"], time.time() + 60)).streams:
            store.run(streams.check_writer(tree, content))
        return time.monotonic() - start > 1.2

    wait_until(still_open, 5)
    out.end()
    assert proc.stat(out.fd).state == "sealed"


def test_renewing_the_lease_before_the_first_text_changes_nothing(
    store: Store, proc: Process, execute: Any
) -> None:
    fd = store.run(streams.open_stream(proc.handle, "output", lease_s=None)).fd
    used = execute("HGET", "fdstore:{triage}", "bytes")

    appender = streams.appender_for_output(proc.handle, fd, 4000)
    store.run(appender.renew())

    assert proc.stat(fd).pages == 1
    assert execute("HGET", "fdstore:{triage}", "bytes") == used
    appender.put("the first text")
    store.run(appender.store())
    store.run(store.run(streams.resume(proc.handle, fd)).renew())
    assert proc.read(fd).text == "the first text"
    assert proc.stat(fd).chars == len("the first text")


def test_a_stream_broken_by_an_expired_lease_accepts_no_more_text(store: Store, proc: Process) -> None:
    appender = store.run(streams.open_stream(proc.handle, "stream", lease_s=0.1))

    wait_until(lambda: proc.stat(appender.fd).state == "broken", 5)
    appender.put("too late")
    with pytest.raises(StreamClosed, match="broken"):
        store.run(appender.store())
