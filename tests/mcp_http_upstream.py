"""A tiny MCP server by HTTP, in a thread, for tests of the gateway: a tool does what its name says."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from fdstore.http.address import listen


def event(message: Any, id: str = "") -> bytes:
    return f"event: message\r\nid: {id}\r\ndata: {json.dumps(message)}\r\n\r\n".encode()


NEWEST = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
"""The metadata of each request since that version."""

NOTE = b": alive\n\n" + event({"method": "notifications/message", "params": {"data": "x" * 9000}})


LARGE = 'a "line" of 9 MB \N{GRINNING FACE}\n' * 350_000

UNANSWERED: dict[str, tuple[bytes, bytes] | None] = {
    "never": None,
    "endless": (b"text/event-stream", b": begun\n\n"),
    "endless_json": (b"application/json", b'{"id": '),
}
"""Tools that never answer: the media type and the body that the response begins with."""


class Upstream:
    """An ASGI application that records the requests it gets. `waiting` and `cancelled` tell of the tools that
    never answer, and of messages without an id with `holds_others`."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.session = "s7"
        self.unasked: list[Any] = []
        self.tools: list[Any] = []
        self.keeps_streams_open = self.holds_others = False
        self.unasked_kind = "text/event-stream"
        self.waiting, self.cancelled = threading.Event(), threading.Event()

    def forget(self) -> None:
        """Forget the requests, and what was told of them."""
        self.requests.clear()
        self.waiting.clear()
        self.cancelled.clear()

    def gets(self) -> list[str | None]:
        """The session of each request by GET."""
        return [headers.get("mcp-session-id") for line, headers, _ in self.requests if line.startswith("GET")]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        body = await request.body()
        message = json.loads(body) if body else {}
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        self.requests.append((f"{request.method} {path}", dict(request.headers), message))
        first = message[0] if isinstance(message, list) else message
        tool = first.get("params", {}).get("name")
        if self.holds_others and request.method == "POST" and not {"id", "method"} <= first.keys():
            tool = "never"
        if tool in UNANSWERED:
            if begun := UNANSWERED[tool]:
                head = [(b"content-type", begun[0])]
                await send({"type": "http.response.start", "status": 200, "headers": head})
                await send({"type": "http.response.body", "body": begun[1], "more_body": True})
            self.waiting.set()
            while (await receive())["type"] != "http.disconnect":
                pass
            self.cancelled.set()
            return
        await self.respond(request, message)(scope, receive, send)

    def respond(self, request: Request, message: Any) -> Response:
        if request.method == "GET":
            last = request.headers.get("last-event-id")
            if last is None and self.unasked:
                return Response(event(self.unasked.pop()), media_type=self.unasked_kind)
            if last is None:
                return Response(status_code=405)
            return stream(event(answer(json.loads(last), text("x" * 9000)), "8"))
        id = message.get("id")
        if request.headers.get("mcp-session-id", self.session) != self.session:
            return Response(status_code=404)
        if id is None:
            return Response(status_code=202)
        if message["method"] == "initialize":
            found = answer(id, {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}})
            if self.keeps_streams_open:
                begun = {"Mcp-Session-Id": self.session}
                return StreamingResponse(open_stream(found), media_type="text/event-stream", headers=begun)
            return Response(
                json.dumps(found), media_type="application/json", headers={"Mcp-Session-Id": self.session}
            )
        if message["method"] == "tools/list":
            found = answer(id, {"tools": self.tools})
            return Response(json.dumps(found), media_type="application/json")
        match message.get("params", {}).get("name"):
            case "lines":
                lines = "".join(f"line {number}\n" for number in range(1, 5001))
                found = json.dumps(answer(id, text(lines)), indent=1)
                return Response(found, media_type="application/json", headers={"X-Kept": "1"})
            case "stream":
                return stream(NOTE + event(answer(id, text("x" * 9000)), "7"))
            case "raw":
                given = message["params"]["arguments"]
                body = given["text"].replace('"ID"', json.dumps(id)).encode()
                return stream(body) if given["stream"] else Response(body, media_type="application/json")
            case "large":
                return Response(json.dumps(answer(id, text(LARGE))), media_type="application/json")
            case "large_stream":
                return stream(NOTE + event(answer(id, text(LARGE)), "7") + NOTE)
            case "megabytes" | "megabytes_stream" as tool:
                return megabytes(id, message["params"]["arguments"]["count"], "stream" in tool)
            case "broken":
                return stream(b"retry: 1\n\n" + event({"method": "notifications/a"}, json.dumps(id)))
            case "later":
                return stream(b"id: 1\nretry: 300000\n\n")
            case "odd_retry":
                return stream(b"retry: " + b"9" * 5000 + b"\n\n" + event(answer(id, text("short"))))
            case "odd_id":
                return stream(b"id: \xff\ndata: {}\n\n")
            case "moved":
                return Response(status_code=307, headers={"Location": "/elsewhere"})
            case "greeted":
                return Response(status_code=202, headers={"Set-Cookie": "who=me; Path=/"})
            case "refused":
                return Response(status_code=401, headers={"WWW-Authenticate": "Bearer"})
        short = f'{{"id" : {json.dumps(id)}, "result":{{"n":1.50}}}}\n'
        return Response(short, media_type="application/json")


def answer(id: Any, result: Any) -> Any:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def text(value: str) -> Any:
    return {"content": [{"type": "text", "text": value}]}


def stream(events: bytes) -> Response:
    return Response(events, media_type="text/event-stream")


async def open_stream(message: Any) -> AsyncIterator[bytes]:
    """Yield an event, and nothing more until the client leaves."""
    yield event(message)
    await asyncio.Event().wait()


def megabytes(id: Any, count: int, is_stream: bool) -> StreamingResponse:
    """Answer with a text of this many MiB, which is never whole in this process."""
    line = b"0123456789abcde\\n"

    def body() -> Iterator[bytes]:
        yield (b"data: " if is_stream else b"") + json.dumps(answer(id, text("@"))).partition("@")[0].encode()
        for _ in range(count):
            yield line * 65536
        yield b'"}]}}' + (b"\n\n" if is_stream else b"")

    kind = "text/event-stream" if is_stream else "application/json"
    return StreamingResponse(body(), media_type=kind)


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application in a thread; the URL of its endpoint."""
    config = uvicorn.Config(app, log_level="error", server_header=False)
    server = uvicorn.Server(config)
    with listen("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            thread.join()
