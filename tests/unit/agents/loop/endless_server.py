"""A server whose answer begins as a test says, and then never ends."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from tests.dialects import current
from tests.recording_server import serving
from tests.unit.agents.loop.model_client import ClientUnderTest

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
COMMENT = b": still here\n\n"
DRIP_EVERY_S = 0.01


class EndlessServer:
    """Its URL, the number of requests, the connections that they came by, and how many bytes it
    could send after the beginning."""

    def __init__(self, beginning: bytes, drip: bytes, *, fast: bool) -> None:
        self.requests = 0
        self.connections: set[Any] = set()
        self.sent = 0
        counts = self
        never = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                counts.requests += 1
                counts.connections.add(self.client_address)
                self.close_connection = bool(drip) or b"\r\nconnection: close" in beginning
                try:
                    self.wfile.write(beginning)
                    while drip:
                        self.wfile.write(drip)
                        counts.sent += len(drip)
                        if not fast:
                            never.wait(DRIP_EVERY_S)
                except ConnectionError:
                    pass

            def log_message(self, *_: Any) -> None:
                return

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def endless(beginning: bytes, drip: bytes = COMMENT, *, fast: bool = False) -> Iterator[EndlessServer]:
    """Yield a server that answers with `beginning`, then with `drip` again and again until the client hangs
    up; without a drip, the answer has ended."""
    found = EndlessServer(beginning, drip, fast=fast)
    with serving(found.server):
        yield found


def streamed(events: list[dict[str, Any]]) -> bytes:
    """Return events as they are sent."""
    named = [(f"event: {event['type']}\n" if "type" in event else "", event) for event in events]
    return "".join(f"{name}data: {json.dumps(event)}\n\n" for name, event in named).encode()


_TEXT = {"type": "text", "text": ""}
_OUTPUT = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}]
WHOLE: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": _TEXT},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ],
    "openai": [
        {"choices": [{"index": 0, "delta": {"content": "Hi."}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ],
    "openai-responses": [
        {"type": "response.output_text.delta", "delta": "Hi."},
        {"type": "response.completed", "response": {"output": _OUTPUT, "usage": {"input_tokens": 1}}},
    ],
}
"""The events of a whole answer, which says "Hi.", by the provider; the last one makes it whole."""


@contextmanager
def client_of(server: EndlessServer) -> Iterator[ClientUnderTest]:
    """Yield a client of this test's API."""
    with closing(current().client(server.url, api_key="any")) as model:
        yield ClientUnderTest(model)


def begun() -> bytes:
    """Return an answer of this test's API without its last event."""
    return HEAD + streamed(WHOLE[current().provider][:-1])


def whole() -> bytes:
    """Return an answer of this test's API."""
    return HEAD + streamed(WHOLE[current().provider])


def error(status: int, more: str = "") -> bytes:
    """Return the head of an error, with `more` lines."""
    head = f"HTTP/1.1 {status} Bad\r\ncontent-type: application/json\r\n{more}connection: close\r\n\r\n"
    return head.encode()
