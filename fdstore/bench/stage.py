"""What the measurements share: a private server, fdstore on it, and redis-py beside it.

The reference is redis-py as anybody uses it, `Redis.from_url(url)`. Round trips are counted by the
server: it reads a client's socket once for each small request or pipeline.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import redis

from fdstore.client import Process, Store, connect
from fdstore.local.redis_server import PrivateServer
from fdstore.records import TreeLimits
from fdstore.store.keys import ContentKeys, content_keys

KB, MB, GB = 1000, 1_000_000, 1_000_000_000

UNBOUNDED = TreeLimits(
    tree_live=10**6, tree_processes=10**6, tree_fds=10**6, tree_bytes=1 << 40, retention_days=0
)
SETTLE_S = 20.0

PROCESSORS = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
"""Where this program may run. A stage within a stage asks here: it was left some of them only."""


class Stage:
    """One server with both clients. `quick` says to leave out what is large."""

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
        """A fresh process; its contents go at the end."""
        proc = self.store.process(limits=UNBOUNDED)
        try:
            yield proc
        finally:
            proc.end()
            self.settle()

    def settle(self) -> None:
        """Waits until the server has freed in the background what was dropped."""
        until = time.monotonic() + SETTLE_S
        while self.plain.info("memory").get("lazyfree_pending_objects", 0) and time.monotonic() < until:
            time.sleep(0.005)

    def trips(self, work: Callable[[], object]) -> int:
        """How many round trips `work` makes, once connected."""
        work()
        before = self._requests_read()
        work()
        # the second INFO is counted by itself
        return self._requests_read() - before - 1

    def _requests_read(self) -> int:
        return int(self.plain.info("stats")["total_reads_processed"])


@contextmanager
def stage(
    *, quick: bool, own_processor: bool = True, options: Mapping[str, str | int] | None = None
) -> Iterator[Stage]:
    """A private server and its clients, for as long as the block runs. `own_processor`: what the server
    runs on, nobody else does."""
    with (
        PrivateServer(options) as server,
        apart(server.pid if own_processor else None),
        connect(server.url) as store,
        redis.Redis.from_url(server.url) as plain,
    ):
        yield Stage(server.url, store, plain, quick=quick)


@contextmanager
def apart(server: int | None) -> Iterator[None]:
    """Keeps the server on one processor and this process, with those it starts, on the others.

    A client and a server that share a processor wake each other in a third of the usual time. Whether
    they do is the kernel's mood, changes within a run, and is not how a server is used in earnest.
    """
    if server is None or len(PROCESSORS) < 2:
        yield
        return
    before = os.sched_getaffinity(0)
    alone = {max(PROCESSORS)}
    os.sched_setaffinity(server, alone)
    os.sched_setaffinity(0, PROCESSORS - alone)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def keys_of(proc: Process, number: int) -> ContentKeys:
    """The keys of a content that this process made."""
    return content_keys(proc.handle.keys.tree, f"{proc.id}/{number}")


def shown(size_bytes: int) -> str:
    """A size, readable.

    >>> shown(2000), shown(100_000_000), shown(1_000_000_000)
    ('2 KB', '100 MB', '1 GB')
    """
    for unit, name in ((GB, "GB"), (MB, "MB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:.0f} {name}"
    return f"{size_bytes / KB:.0f} KB"
