"""A Redis at its maxmemory: no partial writes remain, and what makes room works: closing, ending, killing,
sweeping, moving contents out."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fdstore.client import Process, Store
from fdstore.errors import NotFound, StoreFull
from fdstore.model.records import TreeLimits
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import leases, processes
from fdstore.store.views import gauges, worker_registry
from fdstore_workers.sweeper import Sweeper
from tests import cold_contents
from tests.chaos.conftest import Execute, Faults
from tests.waiting import wait_until

ROOM_BYTES = 3_000_000
TEXT = "".join(f"{number}\n" for number in range(100_000))
LARGE = b"a line of a large file\n" * 300_000


@pytest.fixture
def proc(store: Store) -> Process:
    """A process with a text in a Redis that is nearly full."""
    made = store.process("t")
    made.create(TEXT)
    return made


@pytest.fixture
def fill(execute: Execute, faults: Faults) -> Iterator[Callable[[], None]]:
    """`fill()` uses up the remaining memory to the last byte."""

    def now() -> None:
        execute("CONFIG", "SET", "maxmemory", "1")
        faults.note("redis full")

    yield now
    execute("CONFIG", "SET", "maxmemory", "0")


def leave(room_bytes: int, execute: Execute) -> None:
    used = next(line for line in execute("INFO", "memory").split(b"\r\n") if line.startswith(b"used_memory:"))
    execute("CONFIG", "SET", "maxmemory", str(int(used.partition(b":")[2]) + room_bytes))


@pytest.mark.parametrize("how", ["ingest", "create", "extract"])
def test_a_write_that_exceeds_maxmemory_leaves_no_keys_behind(
    how: str, store: Store, proc: Process, execute: Execute, faults: Faults
) -> None:
    proc.ingest(io.BytesIO(LARGE), "a file")
    before = set(execute("KEYS", "*staging*")), proc.list(), store.tree("t").bytes
    leave(ROOM_BYTES, execute)
    work = {
        "ingest": lambda: proc.ingest(io.BytesIO(LARGE), "a file"),
        "create": lambda: proc.create(LARGE.decode()),
        "extract": lambda: proc.extract("fd:2"),
    }

    with pytest.raises(StoreFull):
        work[how]()
    faults.note("redis full")

    assert (set(execute("KEYS", "*staging*")), proc.list(), store.tree("t").bytes) == before
    assert proc.create("a short text fits again").fd == "fd:3"


def test_closing_and_ending_make_room_in_a_full_redis(
    proc: Process, store: Store, fill: Callable[[], None]
) -> None:
    child = proc.fork()
    proc.create("another")
    fill()

    proc.close("fd:1")
    child.end()
    processes_left = store.tree("t")
    proc.end()

    assert (processes_left.live, processes_left.fds) == (1, 1)
    assert store.tree("t").bytes == 0


def test_agents_keep_their_leases_and_can_be_killed_in_a_full_redis(
    proc: Process, store: Store, fill: Callable[[], None]
) -> None:
    child = store.run(processes.create_child(proc.handle, ["fd:1"], state="ready"))
    other = store.run(processes.create_child(proc.handle, [], state="ready"))
    claimed = store.run(leases.claim(child.keys, "w"))
    stopped = store.run(leases.claim(other.keys, "w"))
    assert claimed
    assert stopped
    handle = ProcessHandle(child.keys, child.limits, claimed.attempt)
    fill()

    store.run(leases.renew(handle))
    back = store.run(leases.return_to_queue(ProcessHandle(other.keys, other.limits, stopped.attempt)))
    done = store.run(processes.cancel("fdstore", "t"))

    assert back.decision == "wake"
    assert set(done.cancelled) == {"t", child.id, other.id}


def test_contents_move_out_of_a_full_redis_and_their_objects_go(
    proc: Process, store: Store, fill: Callable[[], None], tmp_path: Path
) -> None:
    pytest.importorskip("obstore")
    proc.create(TEXT * 3)
    place = tmp_path / "cold"
    fill()
    cold_contents.use_cold(store, f"file://{place}")

    assert cold_contents.turn_cold(store) == 2
    assert proc.read("fd:2", mode="line", start=200_001, count=1).text == "0\n"
    proc.close("fd:1")
    proc.close("fd:2")
    cold_contents.turn_cold(store)

    assert cold_contents.objects_in(place) == []


def is_gone(store: Store, tree: str) -> bool:
    try:
        store.tree(tree)
    except NotFound:
        return True
    return False


def test_a_worker_sweeps_a_full_redis(
    proc: Process, store: Store, fill: Callable[[], None], execute: Execute, tmp_path: Path
) -> None:
    pytest.importorskip("obstore")
    old = store.process("old", limits=TreeLimits(retention_days=1))
    old.create(TEXT)
    old.end()
    execute("HSET", "fdstore:{old}", "used_at", "1000000000.000")
    execute("ZADD", "fdstore:trees", "0", "old")
    lost = store.run(processes.create_child(proc.handle, [], state="ready"))
    assert store.run(leases.claim(lost.keys, "a worker that dies"))
    execute("HSET", lost.keys.record, "lease_until", "1000000000.000")
    execute("ZADD", "fdstore:{t}:leases", "1000000000.000", lost.id)
    woken: list[str] = []
    sweeper = Sweeper(store, "here:1", woken.append)
    fill()
    cold_contents.use_cold(store, f"file://{tmp_path / 'cold'}")

    sweeper.start()
    try:
        wait_until(lambda: is_gone(store, "old"), what="the end of a tree past its retention")
        wait_until(lambda: lost.id in woken, what="the wake-up of a process whose worker died")
        wait_until(lambda: store.tree("t").cold_fds == 1, what="the move")
        wait_until(lambda: store.run(gauges.read_gauges("fdstore")).sweep_lag_s is not None, what="the sums")
        registered = store.run(worker_registry.workers("fdstore"))
    finally:
        sweeper.stop()

    assert registered == ["here:1"]
    assert store.run(worker_registry.workers("fdstore")) == []


def test_what_a_sweep_stores_is_whole_in_a_redis_that_lost_its_scripts(
    proc: Process, store: Store, execute: Execute, faults: Faults, tmp_path: Path
) -> None:
    pytest.importorskip("obstore")
    cold_contents.use_cold(store, f"file://{tmp_path / 'cold'}")

    def flush() -> None:
        execute("SCRIPT", "FLUSH")
        faults.note("scripts lost")

    flush()
    store.run(leases.observe("fdstore"))
    flush()
    store.run(gauges.store_totals("fdstore", [], 1.0))
    flush()
    store.run(worker_registry.acquire_sweep("fdstore", "here:1", 4.0))
    flush()

    assert cold_contents.turn_cold(store) == 1
    assert proc.read("fd:1", mode="line", start=7, count=1).text == "6\n"
    for key in (leases.observed_key("fdstore"), gauges.totals_key("fdstore"), "fdstore:sweeper"):
        assert execute("TTL", key) > 0
