"""Streams whose writer is lost: their lease expires, and they break with all their text."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import StreamBroken, StreamClosed
from fdstore.store.streams import due_streams, streams
from fdstore_workers.sweeper import sweep
from tests.children import Child
from tests.on_redis.followers import Reader, key_of
from tests.thorough import thorough
from tests.waiting import stretched, wait_until

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


@pytest.mark.parametrize("value", ["x", *thorough("other values", "", "x y", "nan", "-1", "1e400")])
def test_an_unreadable_lease_is_given_one_grace_period(
    store: Store, proc: Process, execute: Any, value: str
) -> None:
    appender = store.run(streams.open_stream(proc.handle, "a test", 4096, lease_s=0.2))
    execute("HSET", key_of(proc, appender.fd), "writer_until", value or "0", "lease", value)

    wait_until(lambda: proc.stat(appender.fd).state == "broken")


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

    wait_until(swept)
    assert execute("EXISTS", "fdstore:{triage}:writers") == 0


def test_an_idle_writer_keeps_its_lease(store: Store, proc: Process) -> None:
    lease_s = stretched(0.3)
    out = proc.open_stream(lease_s=lease_s)
    start = time.monotonic()

    def still_open() -> bool:
        assert proc.stat(out.fd).state == "open"
        for tree, content in store.run(due_streams.find_due("fdstore", ["triage"], time.time() + 60)).streams:
            store.run(due_streams.check_writer(tree, content))
        return time.monotonic() - start > 4 * lease_s

    wait_until(still_open)
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

    wait_until(lambda: proc.stat(appender.fd).state == "broken")
    appender.put("too late")
    with pytest.raises(StreamClosed, match="broken"):
        store.run(appender.store())
