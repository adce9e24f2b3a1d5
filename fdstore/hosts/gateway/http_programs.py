"""With `--code`, the programs of clients by HTTP: each is one request, whose response is a stream of what the
program and the servers say meanwhile, with the answer at its end.

A program's calls go to the server as the client's own requests do, with its session and its headers. What a
server asks the client for a call goes into the stream; the client's answer is a request of its own, which the
relay passes on. A client takes a program back by `notifications/cancelled` in its session, or by ending the
stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx2
from starlette.responses import Response, StreamingResponse

from fdstore.hosts.gateway.host_connection import background_thread
from fdstore.hosts.gateway.host_programs import HostPrograms
from fdstore.hosts.gateway.http_connection import HttpConnection
from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.messages import Message
from fdstore.hosts.gateway.own_requests import OwnRequests
from fdstore.hosts.gateway.rewriting import CallOurTool, RequestKey

if TYPE_CHECKING:
    from starlette.requests import Request

    from fdstore.hosts.gateway.code.programs import Programs

STREAM = "text/event-stream"
OF_ONE_REQUEST = frozenset(
    {"content-type", "accept", "mcp-method", "mcp-name", "last-event-id", "content-length"}
)
"""Headers of the client that say something of its request alone."""


class HttpPrograms:
    """The programs of all clients of a relay, which sends requests by `client`."""

    def __init__(self, programs: Programs, client: httpx2.AsyncClient) -> None:
        self.of_gateway, self._client = programs, client
        self._running: dict[tuple[str, RequestKey], _Program] = {}

    def cancel(self, session: str, key: RequestKey) -> None:
        """End the program that a request of a session has begun."""
        if (running := self._running.get((session, key))) is not None:
            running.end()

    async def respond(
        self, request: Request, call: CallOurTool, session: str, url: httpx2.URL, headers: Mapping[str, str]
    ) -> Response:
        """Answer a call of a tool for programs. `headers` are those of the client's session."""
        program = _Program(self.of_gateway, self._client, call, url, headers)
        if session:  # without one the ids of two clients may be equal
            self._running[session, call.key] = program
        leaving = asyncio.ensure_future(program.end_without(request))

        async def messages() -> AsyncIterator[bytes]:
            try:
                async for message in program.messages():
                    yield message
            finally:
                leaving.cancel()
                program.end()
                if self._running.get((session, call.key)) is program:
                    del self._running[session, call.key]

        if STREAM in request.headers.get("accept", ""):
            return StreamingResponse(_events(messages()), media_type=STREAM)
        said = [message async for message in messages()]
        answer = said[-1] if said else b""
        return Response(answer, status_code=200 if said else 202, media_type="application/json")


class _Program:
    """A program under way."""

    def __init__(
        self,
        programs: Programs,
        client: httpx2.AsyncClient,
        call: CallOurTool,
        url: httpx2.URL,
        headers: Mapping[str, str],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._said: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._programs = programs
        self._server = HttpConnection(url, client, self._take, headers)
        self._calls = OwnRequests[None](self._send)
        self._host = HostPrograms(programs, self._calls, self._put)
        run = self._host.begin(call)
        assert run is not None

        def answer() -> None:
            said: bytes | None = None
            try:
                said = run()
            finally:
                self._put(said)
                self._put(None)

        background_thread(answer, "program").start()

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield what the client gets: at the end the answer, if the program was not taken back."""
        while (message := await self._said.get()) is not None:
            yield message

    async def end_without(self, request: Request) -> None:
        """End the program if the client goes away."""
        await disconnected(request)
        self.end()

    def end(self) -> None:
        """End it, if it has not ended, and what it waits for: on a thread, since calls are taken back by
        messages that go through the event loop."""

        def end() -> None:
            self._host.end()
            with suppress(RuntimeError):  # the relay has ended
                self._loop.call_soon_threadsafe(self._close)

        background_thread(end, "end").start()

    def _close(self) -> None:
        for task in self._server.open_requests:
            task.cancel()

    def _send(self, line: Buffer) -> None:
        with suppress(RuntimeError):  # the relay has ended
            self._loop.call_soon_threadsafe(self._server.send, bytes(line))

    def _take(self, message: Message) -> None:
        """Take a message of the server: one that no call of the program waits for is for the client."""
        if not self._calls.take(message):
            self._programs.look_at(message)
            self._put(bytes(message.whole))

    def _put(self, message: bytes | None) -> None:
        with suppress(RuntimeError):  # the relay has ended
            self._loop.call_soon_threadsafe(self._said.put_nowait, message)


async def disconnected(request: Request) -> None:
    """Wait until the client has gone; its body was read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _events(messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for message in messages:
        yield b"event: message\ndata: " + message + b"\n\n"
