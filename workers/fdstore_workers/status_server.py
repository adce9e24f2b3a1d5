"""The HTTP server of a worker: /metrics for Prometheus, /healthz and /readyz for probes.

It runs on a thread of the process that consumes messages: if that hangs, so does the answer. The
supervisor opens the port, once, so that it stays open while a new process replaces a dead one, and the
counts of all are in memory that they share (`StatusPort`). Everything is read-only and bounded, and
nothing holds content; but names of tools, programs and models are there to see, so it listens on the
loopback address unless told otherwise.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

import fdstore
from fdstore.agents.runtime.claim import Flag
from fdstore.client import Store
from fdstore.errors import FDStoreError, InvalidArgument
from fdstore.setup import settings
from fdstore.setup.optional_packages import require
from fdstore.store.views.worker_registry import WorkerLoad
from fdstore.telemetry.counts import Counts, Key, turn_on
from fdstore.telemetry.otel import saved_chars
from fdstore.wire._sync.cluster import make_runner
from fdstore_workers.health import LOOP_BEAT_S, StoreProbe, StoreState, WorkerHealth
from fdstore_workers.sweeper import Sweeper

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


OTHERS = 16
"""Processes of a worker beside those that run agents: the one that consumes messages, and burials."""


class StatusPort(msgspec.Struct, frozen=True):
    """Shared by the processes of a worker: the listening socket, and the counts of all of them."""

    listener: socket.socket
    counts: Counts
    slots: int


def open_status(host: str, port: int, concurrency: int) -> StatusPort:
    """Open the port and begin to count. Raises `InvalidArgument`, `MissingExtra`."""
    require(("prometheus_client", "uvicorn"), "metrics")
    return StatusPort(listen(host, port), turn_on(2 * concurrency + OTHERS), concurrency)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 is any free one. Raises `InvalidArgument`."""
    try:
        [(family, _, _, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise InvalidArgument("--metrics-port", f"{host}:{port}: {error.strerror or error}") from error


class StatusServer:
    """Serves the state of a worker on a listening socket, until it is closed. Raises `InvalidArgument` for
    limits in the environment that are no numbers."""

    def __init__(
        self, listener: socket.socket, counts: Counts, health: WorkerHealth, probe: StoreProbe, slots: int
    ) -> None:
        # a worker without --metrics-port imports this module too, and needs no package of the extra `metrics`
        from fdstore.http.server import HttpServer

        self._counts, self._health, self._probe, self._slots = counts, health, probe, slots
        self._listener = listener
        self._server = HttpServer(self._respond)
        self._thread = threading.Thread(target=self._serve, name="status", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop serving. The socket stays open, for the process that follows."""
        self._server.should_exit = True
        self._thread.join()

    def _serve(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._listener.dup()]))

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request: the ASGI app of this server."""
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        accept = headers.get(b"accept", b"").decode("latin-1")
        status, content_type, body = (
            await asyncio.to_thread(self.answer, scope["path"], accept)
            if scope["method"] in ("GET", "HEAD")
            else (405, "text/plain; charset=utf-8", b"only GET is possible\n")
        )
        shown = [
            (b"content-type", content_type.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": shown})
        await send({"type": "http.response.body", "body": body})

    def metrics(self, accept: str) -> tuple[int, str, bytes]:
        """Return status, content type and body of /metrics."""
        from fdstore.telemetry.prometheus import render

        counted = self._counts.read()
        gauges: dict[Key, float] = {
            ("fdstore_build_info", fdstore.__version__): 1,
            ("fdstore_worker_ready",): not self._health.why_not_ready(),
            ("fdstore_worker_slots",): self._slots,
            **load_gauges(self._health.load()),
            ("fdstore_saved_chars",): saved_chars(counted),
        }
        body, content_type = render(counted, gauges | store_gauges(self._probe.look()), accept)
        return 200, content_type, body

    def probe(self, why_not: str) -> tuple[int, str, bytes]:
        """Return the answer to a probe."""
        return (503 if why_not else 200), "text/plain; charset=utf-8", f"{why_not or 'ok'}\n".encode()

    def answer(self, path: str, accept: str) -> tuple[int, str, bytes]:
        """Return the answer to a request."""
        match path:
            case "/metrics":
                return self.metrics(accept)
            case "/healthz":
                return self.probe(self._health.why_dead())
            case "/readyz":
                return self.probe(self._health.why_not_ready())
        return 404, "text/plain; charset=utf-8", b"there are /metrics, /healthz and /readyz\n"


def load_gauges(load: WorkerLoad | None) -> dict[Key, float]:
    """Return the gauges of a worker's load; none if it is not known."""
    if load is None:
        return {}
    return {("fdstore_worker_busy_slots",): load.busy, ("fdstore_worker_lost_slots",): load.lost}


def store_gauges(state: StoreState) -> dict[Key, float]:
    """Return the gauges of the store; those that are not known are absent."""
    found = state.gauges
    if found is None:
        return {("fdstore_store_up",): 0}
    values: dict[str, float | None] = {
        "fdstore_store_up": 1,
        "fdstore_store_used_memory_bytes": found.used_memory_bytes,
        "fdstore_store_max_memory_bytes": found.max_memory_bytes,
        "fdstore_store_text_bytes": found.text_bytes,
        "fdstore_store_trees": found.trees,
        "fdstore_store_live_processes": found.live_processes,
        "fdstore_store_open_streams": found.open_streams,
        "fdstore_store_workers": found.workers,
        "fdstore_sweep_lag_seconds": found.sweep_lag_s,
        "fdstore_queue_length": state.queue_length,
        "fdstore_queue_oldest_age_seconds": state.queue_oldest_s,
    }
    return {(name,): value for name, value in values.items() if value is not None}


class WorkerStatus:
    """The server of one process that works; nothing without a `port`."""

    def __init__(
        self,
        port: StatusPort | None,
        store: Store,
        broker_url: str | None,
        sweeper: Sweeper,
        stopping: Flag,
        load: Callable[[], WorkerLoad | None],
    ) -> None:
        self._server: StatusServer | None = None
        if port is None:
            return
        self._queue = _queue_store(store, broker_url)
        self._probe = StoreProbe(store, self._queue)
        self._health = WorkerHealth(sweeper, self._probe, stopping, load)
        self._server = StatusServer(port.listener, port.counts, self._health, self._probe, port.slots)
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
