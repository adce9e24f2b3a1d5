"""When the messages of a host are sent to a server by HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from fdstore.hosts.gateway import http_connection
from fdstore.hosts.gateway.http_connection import HttpConnection
from tests.waiting import PATIENCE_S

STREAM = {"content-type": "text/event-stream"}


class Server:
    """A server whose responses the test gives. `held` are the methods that it does not respond to before
    `released` is set."""

    def __init__(self, *held: str) -> None:
        self.got: list[str] = []
        self.held, self.released = held, asyncio.Event()
        self.connection = HttpConnection(
            "http://server/mcp", httpx2.AsyncClient(transport=httpx2.MockTransport(self.respond)), print
        )

    async def respond(self, request: httpx2.Request) -> httpx2.Response:
        message = json.loads(request.content or b"{}")
        self.got.append(method := message.get("method", request.method))
        if method in self.held:
            await self.released.wait()
        if "id" not in message:
            return httpx2.Response(202)
        return httpx2.Response(200, headers=STREAM, content=b"id: 1\nretry: 0\n\n")

    def send(self, method: str, **more: Any) -> None:
        self.connection.send(json.dumps({"method": method, **more}).encode())

    async def until(self, happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not happened():
                await asyncio.sleep(0)


async def turns() -> None:
    """Let everything happen that waits for nothing."""
    for _ in range(100):
        await asyncio.sleep(0)


async def test_what_expects_no_answer_is_taken_before_the_next_message_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_connection, "IN_ORDER_S", PATIENCE_S)
    server = Server("notifications/initialized")
    server.send("notifications/initialized")
    server.send("tools/list", id=1)
    await server.until(lambda: bool(server.got))
    await turns()
    assert server.got == ["notifications/initialized"]

    server.released.set()

    await server.until(lambda: "tools/list" in server.got)
    await server.connection.end_session()


async def test_a_call_that_is_taken_back_while_it_waits_for_its_turn_is_never_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_connection, "IN_ORDER_S", PATIENCE_S)
    newest = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    server = Server("notifications/progress")
    server.send("notifications/progress")
    server.send("tools/call", id=1, params=newest)

    server.send("notifications/cancelled", params={"requestId": 1, **newest})
    server.send("tools/list", id=2)
    server.released.set()

    await server.until(lambda: "tools/list" in server.got)
    assert "tools/call" not in server.got


async def test_a_broken_stream_is_not_continued_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "MIN_RECONNECT_S", PATIENCE_S)
    server = Server()
    server.send("tools/call", id=1)
    await server.until(lambda: bool(server.got))

    await turns()

    assert server.got == ["tools/call"]
    for task in server.connection.open_requests:
        task.cancel()
