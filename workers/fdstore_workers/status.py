"""The setup of a worker with `--metrics-port`: the counts before it forks, the server in the process
that works."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import msgspec

from fdstore import settings
from fdstore.client import Store
from fdstore.errors import FDStoreError
from fdstore.optional_packages import require
from fdstore.runtime.claim import Flag
from fdstore.store.views.worker_registry import WorkerLoad
from fdstore.telemetry import counts
from fdstore.wire._sync.cluster import make_runner
from fdstore_workers.health import LOOP_BEAT_S, Health, StoreProbe
from fdstore_workers.status_server import StatusServer, listen
from fdstore_workers.sweeper import Sweeper

OTHERS = 16
"""Processes of a worker beside those that run agents: the one that consumes messages, and burials."""


class Status(msgspec.Struct, frozen=True):
    """Shared by the processes of a worker: the listening socket, and the counts of all of them."""

    listener: socket.socket
    counts: counts.Counts
    slots: int


def open_status(host: str, port: int, concurrency: int) -> Status:
    """Open the port and begin to count. Raises `InvalidArgument`, `MissingExtra`."""
    require(("prometheus_client", "uvicorn"), "metrics")
    return Status(listen(host, port), counts.turn_on(2 * concurrency + OTHERS), concurrency)


class Watch:
    """The server of one process that works; nothing without a `status`."""

    def __init__(
        self,
        status: Status | None,
        store: Store,
        broker_url: str | None,
        sweeper: Sweeper,
        stopping: Flag,
        load: Callable[[], WorkerLoad | None],
    ) -> None:
        self._server: StatusServer | None = None
        if status is None:
            return
        self._queue = _queue_store(store, broker_url)
        self._probe = StoreProbe(store, self._queue)
        self._health = Health(sweeper, self._probe, stopping, load)
        self._server = StatusServer(status.listener, status.counts, self._health, self._probe, status.slots)
        self._server.start()
        self._store = store

    def started(self, hub: Any) -> None:
        """Note that messages are consumed. `hub` is the loop that does it; None: it is not watched."""
        if self._server is not None:
            self._health.started()
            if hub is not None:
                self._health.loop_moved()
                hub.call_repeatedly(LOOP_BEAT_S, self._health.loop_moved)

    def close(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.close()
            self._probe.close()
            if self._queue is not None and self._queue is not self._store:
                self._queue.close()


def _queue_store(store: Store, broker_url: str | None) -> Store | None:
    """Return a connection to the Redis that holds the queue; None if its URL is not one of ours."""
    url = broker_url or settings.read().broker_url
    if not url or url == store.url:
        return store
    try:
        return Store(make_runner(url), store.prefix, url)
    except FDStoreError:
        return None
