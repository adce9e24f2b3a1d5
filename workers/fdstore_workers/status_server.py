"""The HTTP server of a worker: /metrics for Prometheus, /healthz and /readyz for probes.

It runs on threads of the process that consumes messages: if that hangs, so does the answer. The
supervisor opens the port, once, so that it stays open while a new process replaces a dead one, and the
counts of all are in memory that they share. Everything is read-only and bounded, and nothing holds
content; but names of tools, programs and models are there to see, so it listens on the loopback address
unless told otherwise.
"""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fdstore
from fdstore.errors import InvalidArgument
from fdstore.telemetry.counts import Counts, Key
from fdstore.telemetry.otel import saved_chars
from fdstore_workers.health import Health, StoreProbe, StoreState

AT_ONCE = 16
"""Requests that are served at the same time; others wait."""

REQUEST_S = 5.0
"""How long a client may take to send its request."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 is any free one. Raises `InvalidArgument`."""
    try:
        [(family, _, _, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return socket.create_server(address[:2], family=family, backlog=AT_ONCE)
    except OSError as error:
        raise InvalidArgument("--metrics-port", f"{host}:{port}: {error.strerror or error}") from error


class StatusServer:
    """Serves the state of a worker on a listening socket, until it is closed."""

    def __init__(
        self, listener: socket.socket, counts: Counts, health: Health, probe: StoreProbe, slots: int
    ) -> None:
        self._counts, self._health, self._probe, self._slots = counts, health, probe, slots
        self._server = _Server(listener, self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="status", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop serving. The socket stays open, for the process that follows."""
        self._server.shutdown()
        self._thread.join()

    def metrics(self, accept: str) -> tuple[int, str, bytes]:
        """Return status, content type and body of /metrics."""
        # a worker without --metrics-port imports this module too, and needs no package of the extra `metrics`
        from fdstore.telemetry.prometheus import render

        counted = self._counts.read()
        gauges: dict[Key, float] = {
            ("fdstore_build_info", fdstore.__version__): 1,
            ("fdstore_worker_ready",): not self._health.why_not_ready(),
            ("fdstore_worker_slots",): self._slots,
            ("fdstore_saved_chars",): saved_chars(counted),
        }
        body, content_type = render(counted, gauges | store_gauges(self._probe.look()), accept)
        return 200, content_type, body

    def probe(self, why_not: str) -> tuple[int, str, bytes]:
        """Return the answer to a probe."""
        return (503 if why_not else 200), "text/plain; charset=utf-8", f"{why_not or 'ok'}\n".encode()

    def answer(self, path: str, accept: str) -> tuple[int, str, bytes]:
        """Return the answer to a request."""
        match path.partition("?")[0]:
            case "/metrics":
                return self.metrics(accept)
            case "/healthz":
                return self.probe(self._health.why_dead())
            case "/readyz":
                return self.probe(self._health.why_not_ready())
        return 404, "text/plain; charset=utf-8", b"there are /metrics, /healthz and /readyz\n"


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


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listener: socket.socket, status: StatusServer) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.status = status
        self._free = threading.BoundedSemaphore(AT_ONCE)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._free.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: the client has gone, or was too slow."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_S

    def do_GET(self) -> None:
        status, content_type, body = self.server.status.answer(self.path, self.headers.get("Accept", ""))
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log no requests: probes and scrapes come every few seconds."""
