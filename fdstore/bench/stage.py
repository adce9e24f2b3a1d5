"""The environment of the measurements: a private server with an fdstore and a redis-py client.

The reference is redis-py with its defaults, `Redis.from_url(url)`. Round trips are counted by the server: it
reads a client's socket once for each small request or pipeline.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import redis

from fdstore.bench.measuring import Bar, BenchRow, Lap, at_most, row, slower, take_turns
from fdstore.client import Process, Store, connect
from fdstore.local.redis_server import PrivateServer
from fdstore.model.records import TreeLimits
from fdstore.store.keys import ContentKeys, content_keys
from fdstore.store.tree_limits import LIMITS
from fdstore.text.numbers import MAX_INTEGER

KB, MB, GB = 1000, 1_000_000, 1_000_000_000

UNBOUNDED = TreeLimits(**dict.fromkeys(LIMITS, MAX_INTEGER), retention_days=0)
SETTLE_S = 20.0

CPUS = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
"""The CPUs of this program at import; a nested stage runs on some of them only."""


class BenchStage:
    """A server with both clients. `quick` skips large measurements."""

    def __init__(self, url: str, store: Store, plain: redis.Redis, *, quick: bool) -> None:
        self.url = url
        self.store = store
        self.plain = plain
        self.quick = quick
        self.budget_s = 0.35 if quick else 2.0

    @property
    def sizes(self) -> list[int]:
        """The sizes of content to read, in bytes."""
        return [2 * KB, MB, 10 * MB] if self.quick else [2 * KB, MB, 10 * MB, 100 * MB, GB]

    @contextmanager
    def process(self) -> Iterator[Process]:
        """Create a process, and end it with its contents after the block."""
        proc = self.store.process(limits=UNBOUNDED)
        try:
            yield proc
        finally:
            proc.end()
            self.settle()

    def settle(self) -> None:
        """Wait until the server has freed dropped keys in the background."""
        until = time.monotonic() + SETTLE_S
        while self.plain.info("memory").get("lazyfree_pending_objects", 0) and time.monotonic() < until:
            time.sleep(0.005)

    def compare(self, case: str, bar: Bar, ours: Lap, theirs: Lap, *, at_once: int | None = None) -> BenchRow:
        """Measure our time as a multiple of theirs."""
        return slower(case, bar, take_turns([ours, theirs], self.budget_s, at_once=at_once))

    def compare_speed(self, case: str, bar: Bar, ours: Lap, theirs: Lap, size_bytes: int) -> BenchRow:
        """Measure our throughput in percent of theirs, by long laps that move so many bytes."""
        rounds = take_turns([ours, theirs], self.budget_s, at_once=1)
        speeds = (f"{size_bytes / median / 1e6:.0f} MB/s" for median in rounds.medians)
        return row(case, bar, rounds.value(lambda a, b: 100 * b / a), *speeds)

    def round_trips(self, case: str, most: int, *works: Callable[[], object]) -> BenchRow:
        """Count the round trips of the work that has most."""
        return row(f"{case}: round trips", at_most(most, "trips"), max(map(self.trips, works)))

    def trips(self, work: Callable[[], object]) -> int:
        """Return the number of round trips of `work`, once connected."""
        work()
        before = self._requests_read()
        work()
        # the second INFO counts itself
        return self._requests_read() - before - 1

    def _requests_read(self) -> int:
        return int(self.plain.info("stats")["total_reads_processed"])


@contextmanager
def stage(
    *, quick: bool, own_processor: bool = True, options: Mapping[str, str | int] | None = None
) -> Iterator[BenchStage]:
    """Start a private server and its clients for the block. `own_processor`: reserve a CPU for the server."""
    with (
        PrivateServer(options) as server,
        pinned_to_own_cpu(server.pid if own_processor else None),
        connect(server.url) as store,
        redis.Redis.from_url(server.url) as plain,
    ):
        yield BenchStage(server.url, store, plain, quick=quick)


@contextmanager
def pinned_to_own_cpu(server: int | None) -> Iterator[None]:
    """Pin the server to one CPU, and this process and its children to the others.

    A client and a server on the same CPU wake each other in a third of the usual time. Whether they share one
    is up to the scheduler, changes within a run, and is not typical of production.
    """
    if server is None or len(CPUS) < 2:
        yield
        return
    before = os.sched_getaffinity(0)
    alone = {max(CPUS)}
    os.sched_setaffinity(server, alone)
    os.sched_setaffinity(0, CPUS - alone)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def keys_of(proc: Process, number: int) -> ContentKeys:
    """Return the keys of a content that this process created."""
    return content_keys(proc.handle.keys.tree, f"{proc.id}/{number}")


def format_size(size_bytes: int) -> str:
    """Format a size for people.

    >>> format_size(2000), format_size(100_000_000), format_size(1_000_000_000)
    ('2 KB', '100 MB', '1 GB')
    """
    for unit, name in ((GB, "GB"), (MB, "MB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:.0f} {name}"
    return f"{size_bytes / KB:.0f} KB"
