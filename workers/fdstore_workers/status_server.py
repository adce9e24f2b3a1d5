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
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

import fdstore
from fdstore.agents.runtime.claim import Flag
from fdstore.client import Store
from fdstore.errors import FDStoreError, InvalidArgument
from fdstore.http.address import PortRefused, listen
from fdstore.setup import settings
from fdstore.setup.optional_packages import require
from fdstore.store.views.gauges import QueueGauges, StoreGauges
from fdstore.store.views.worker_registry import WorkerLoad
from fdstore.telemetry.counts import Counts, turn_on
from fdstore.telemetry.metric_table import SAVED_CHARS, Metric, Plot, gauges_of
from fdstore.telemetry.otel import saved_chars
from fdstore.wire._sync.cluster import make_runner
from fdstore_workers.health import LOOP_BEAT_S, StoreProbe, WorkerHealth
from fdstore_workers.sweeper import Sweeper

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


OTHERS = 16
"""Processes of a worker beside those that run agents: one consumes messages, others release what a dead one
held."""


class WorkerGauges(msgspec.Struct, frozen=True, kw_only=True):
    """The state of this worker. What it is busy with is None if that is not known."""

    version: Annotated[
        str, Metric("fdstore_build_info", "1, with the version of this worker.", ("version",))
    ] = fdstore.__version__
    ready: Annotated[
        bool,
        Metric(
            "fdstore_worker_ready",
            "1 while this worker accepts work, as /readyz.",
            plots=(Plot("Ready workers"), Plot("Workers", "ready")),
        ),
    ]
    slots: Annotated[
        int,
        Metric(
            "fdstore_worker_slots",
            "Agents that this worker can run at the same time.",
            plots=(Plot("Workers", "slots"),),
        ),
    ]
    busy: Annotated[
        int | None,
        Metric(
            "fdstore_worker_busy_slots",
            "Slots of this worker that are in use.",
            plots=(Plot("Workers", "busy"),),
        ),
    ]
    lost: Annotated[
        int | None,
        Metric(
            "fdstore_worker_lost_slots",
            "Slots of this worker that are held by calls which do not end although their process is "
            "another's by now, or was cancelled.",
            plots=(Plot("Workers", "held by lost calls"),),
        ),
    ]
    saved_chars: Annotated[float, SAVED_CHARS]
    store_up: Annotated[
        bool,
        Metric(
            "fdstore_store_up",
            "1 if the store answered. If 0, all that follows is absent.",
            plots=(Plot("Store", expr="max(fdstore_store_up)"),),
        ),
    ]


GAUGES = tuple(
    gauge for kind in (WorkerGauges, StoreGauges, QueueGauges) for gauge in gauges_of(kind).values()
)
"""Every gauge at /metrics, in the order there."""


class StatusPort(msgspec.Struct, frozen=True):
    """Shared by the processes of a worker: the listening socket, and the counts of all of them."""

    listener: socket.socket
    counts: Counts
    slots: int


def open_status(host: str, port: int, concurrency: int) -> StatusPort:
    """Open the port and begin to count; port 0 is any free one. Raises `InvalidArgument`, `MissingExtra`."""
    require(("prometheus_client", "uvicorn"), "metrics")
    try:
        listener = listen(host, port)
    except PortRefused as error:
        raise InvalidArgument("--metrics-port", f"{error.where}: {error.problem.capitalize()}") from error
    return StatusPort(listener, turn_on(2 * concurrency + OTHERS), concurrency)


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
        why_not_ready, load, state = self._health.why_not_ready(), self._health.load(), self._probe.look()
        worker = WorkerGauges(
            ready=not why_not_ready,
            slots=self._slots,
            busy=None if load is None else load.busy,
            lost=None if load is None else load.lost,
            saved_chars=saved_chars(counted),
            store_up=state.gauges is not None,
        )
        body, content_type = render(counted, (worker, state.gauges, state.queue), accept)
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
