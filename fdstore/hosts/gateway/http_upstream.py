"""An MCP server by HTTP, whose messages come and go as those of a child process. Its connection has an event
loop of its own, on a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeAlias

import httpx2

from fdstore.hosts.gateway.config_entries import public_url
from fdstore.hosts.gateway.host_connection import background_thread
from fdstore.hosts.gateway.http_connection import HttpConnection, upstream_client
from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.messages import Message

_Said: TypeAlias = tuple[Message, threading.Event]
"""A message, and what is set once it is taken: until then the rest of its response waits."""


class HttpUpstream:
    """A server by HTTP. `headers` are sent with every request; none goes to another address than `url`."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url, self.command = url, public_url(url)
        self._headers = {**headers, "Accept-Encoding": "identity"}
        self._said: SimpleQueue[_Said | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop
        self._gone, self._over = asyncio.Event(), asyncio.Event()
        self._connection: HttpConnection
        client = upstream_client(headers=self._headers)
        begun = threading.Event()
        self._thread = background_thread(lambda: asyncio.run(self._serve(client, begun)), "relay")
        self._thread.start()
        begun.wait()

    async def _serve(self, client: httpx2.AsyncClient, begun: threading.Event) -> None:
        """Be there until the host needs nothing more: it has gone, and its requests are answered or over."""
        self._loop = asyncio.get_running_loop()
        self._connection = HttpConnection(self._url, client, self._take)
        begun.set()
        async with client:
            await self._gone.wait()
            over = asyncio.ensure_future(self._over.wait())
            while self._connection.open_requests and not over.done():
                awaited = [over, *self._connection.open_requests]
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            self._said.put(None)
            await over
            await self._connection.end_session()

    def _take(self, message: Message) -> None:
        taken = threading.Event()
        self._said.put((message, taken))
        taken.wait()

    def send(self, line: Buffer) -> None:
        """Begin to send a message of the host. It waits for nothing: what a server holds holds up no host."""
        sent = bytes(line)
        if sent.strip():
            self._call(lambda: self._connection.send(sent))

    def messages(self) -> Iterator[Message]:
        """Yield what the server says, until all requests that precede `close_stdin` are answered."""
        while (said := self._said.get()) is not None:
            message, taken = said
            del said
            yield message
            del message  # which may be large
            taken.set()

    def close_stdin(self) -> None:
        """Note that no request follows."""
        self._call(self._gone.set)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Return the exit code once it is over; None if it is not after `timeout_s`."""
        self._thread.join(timeout_s)
        return None if self._thread.is_alive() else 0

    def end(self, _: float) -> int:
        """Wait for no answer any more, and end the session."""
        self._call(self._gone.set)
        self._call(self._over.set)
        self._thread.join()
        return 0

    def _call(self, action: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the relay has ended
            self._loop.call_soon_threadsafe(action)

    def pass_stderr(self, target: int) -> None:
        """A server by HTTP keeps its log."""

    def finish_stderr(self, timeout_s: float) -> None:
        """There is nothing to wait for."""

    def describe_end(self, _: int) -> str:
        """Return a sentence about its end."""
        return f"the connection to the MCP server has ended: {self.command}"
