"""The HTTP server of the scripted model: a loopback listener that sends `HttpAnswer`s.

HTTP/1.1 with keep-alive; streams are chunked, one event per chunk. One thread accepts, and one serves each
connection. Closing is the hard part: an idle keep-alive connection blocks in a read, so `close` shuts every
open socket down and waits for its thread.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

import msgspec

from fdstore.testing.wire import HttpAnswer

BACKLOG = 1024
"""Listen backlog: several hundred agents connect at the same moment."""
POLL_SECONDS = 0.05
CLOSE_SECONDS = 5.0
"""The time that close() waits for connection threads; a script function that never returns is abandoned."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request as received; header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Respond = Callable[[HttpRequest], HttpAnswer | None]
"""Return the answer to a request; None drops the connection."""


class Listener(socketserver.ThreadingTCPServer):
    """A server on a port of 127.0.0.1 (0: any free one), from construction until `close`."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = BACKLOG

    def __init__(self, respond: Respond, port: int = 0) -> None:
        self.respond = respond
        self.errors: list[BaseException] = []
        self._open: set[Any] = set()
        self._left = threading.Condition()
        super().__init__(("127.0.0.1", port), Connection)
        self._thread = threading.Thread(
            target=self.serve_forever, args=(POLL_SECONDS,), name="scripted-model", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])

    def close(self) -> None:
        """Stop accepting, end every connection, wait for the threads."""
        self.shutdown()
        self._thread.join()
        self.server_close()
        with self._left:
            for connection in self._open:
                # shutdown fails if the peer has disconnected
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._left.wait_for(lambda: not self._open, CLOSE_SECONDS)

    def process_request(self, request: Any, client_address: Any) -> None:
        # Added by the accepting thread, so that all connections are known once it has ended.
        with self._left:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._left:
            self._open.discard(request)
            self._left.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        # Ignore clients that disconnected; anything else is a bug and must be reported.
        if error is not None and not isinstance(error, ConnectionError):
            self.errors.append(error)


class Connection(BaseHTTPRequestHandler):
    """Handler of the requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listener

    def do_POST(self) -> None:
        call = HttpRequest(
            method=self.command,
            path=urlsplit(self.path).path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(int(self.headers.get("content-length") or 0)),
        )
        answer = self.server.respond(call)
        if answer is None:
            self.close_connection = True
            return
        self._send(answer)

    do_GET = do_PUT = do_PATCH = do_DELETE = do_POST

    def _send(self, answer: HttpAnswer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.streamed:
            self.send_header("content-type", answer.streamed)
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(answer.length or sum(map(len, answer.pieces))))
        self.end_headers()
        for number, piece in enumerate(answer.pieces):
            if answer.hold is not None and number == answer.hold_at and not answer.hold():
                self.close_connection = True
                return
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if answer.streamed else piece)
        if answer.dropped:
            self.close_connection = True
        elif answer.streamed:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Suppress request logging."""
