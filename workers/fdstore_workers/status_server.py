"""The HTTP server of a worker: /metrics for Prometheus, /healthz and /readyz for probes.

It runs on a thread of the process that consumes messages: if that hangs, so does the answer. The
supervisor opens the port, once, so that it stays open while a new process replaces a dead one, and the
counts of all are in memory that they share. Everything is read-only and bounded, and nothing holds
content; but names of tools, programs and models are there to see, so it listens on the loopback address
unless told otherwise.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING

import fdstore
from fdstore.errors import InvalidArgument
from fdstore.store.views.worker_registry import WorkerLoad
from fdstore.telemetry.counts import Counts, Key
from fdstore.telemetry.otel import saved_chars
from fdstore_workers.health import Health, StoreProbe, StoreState

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


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
        self, listener: socket.socket, counts: Counts, health: Health, probe: StoreProbe, slots: int
    ) -> None:
        # a worker without --metrics-port imports this module too, and needs no package of the extra `metrics`
        from fdstore.http_server import HttpServer

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
