"""A server that records the headers of all requests and gives each the same answer."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class RecordingServer:
    """Its URL, and the headers, paths and bodies of the requests so far."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        seen: list[dict[str, str]] = []
        paths: list[str] = []
        bodies: list[bytes] = []
        self.seen, self.paths, self.bodies = seen, paths, bodies

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                seen.append({name.lower(): value for name, value in self.headers.items()})
                paths.append(self.path)
                bodies.append(self.rfile.read(int(self.headers.get("content-length", 0))))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST

            def log_message(self, *_: Any) -> None:
                return

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def text(self) -> str:
        """Everything that was sent to it in headers."""
        return "\n".join(f"{name}: {value}" for headers in self.seen for name, value in headers.items())


@contextmanager
def recording(
    status: int = 400,
    headers: Mapping[str, str] = {"content-type": "application/json"},
    body: bytes = b'{"type":"error","error":{"type":"invalid_request_error","message":"no"}}',
) -> Iterator[RecordingServer]:
    found = RecordingServer(status, headers, body)
    with serving(found.server):
        yield found


@contextmanager
def serving(server: http.server.HTTPServer) -> Iterator[None]:
    """Have a server answer in a thread while the block runs, and close it."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
