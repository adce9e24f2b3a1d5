"""A proxy in front of Redis that loses replies, cuts connections, falls silent and moves on.

    client --- commands --> proxy --> server
                            proxy <-- server
    client <-- replies ---  proxy

To lose a reply, the proxy forwards the command, waits for the server's reply, forwards the replies of earlier
commands, and closes the connection: the command was executed, but its client cannot know. Every command of a
pipelined batch counts; RESP marks where a reply ends. One thread runs the proxy, with asyncio.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.loop_thread import LoopThread
from tests.waiting import meanwhile

CHUNK_BYTES = 1 << 16

BETWEEN_CUTS_S = 0.03
"""The longest time from a reply that passed to the cut that follows it."""


def count_complete(data: bytes) -> tuple[int, int]:
    """Return how many complete commands or replies `data` begins with, and their size in bytes.

    >>> count_complete(b"*1\\r\\n$4\\r\\nPING\\r\\n*1\\r\\n$4")
    (1, 14)
    """
    count = at = 0
    while (end := _end(data, at)) is not None:
        count, at = count + 1, end
    return count, at


def _end(data: bytes, at: int) -> int | None:
    """Return where the RESP2 value that begins at `at` ends; None if it is incomplete."""
    line = data.find(b"\r\n", at)
    if line < 0:
        return None
    kind, after = data[at : at + 1], line + 2
    if kind == b"$":
        size = int(data[at + 1 : line])
        after += size + 2 if size >= 0 else 0
    elif kind == b"*":
        for _ in range(int(data[at + 1 : line])):
            inner = _end(data, after)
            if inner is None:
                return None
            after = inner
    return after if after <= len(data) else None


async def _drain(writer: asyncio.StreamWriter) -> None:
    """Wait until the write buffer is empty or the connection is lost."""
    while writer.transport.get_write_buffer_size() and not writer.transport.is_closing():
        await asyncio.sleep(0.001)


class _ProxyConnection:
    """One connection through the proxy."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client = client
        self.server = server
        self.is_doomed = False
        """Whether its next reply is lost."""

    def cut(self) -> None:
        for end in (self.client, self.server):
            end.transport.abort()


class Proxy:
    """A proxy for the server at `url` (redis://HOST:PORT or unix://PATH); clients connect to `self.url`.

    lose_every(n)         the reply of every n-th command from now on is lost (0: of none)
    lose(times, marker)   the replies to the next requests that contain the marker are lost
    cut()                 all connections break now
    cut_at_random(rng)    they break again and again, until the block ends
    silence(True)         connections stay, and nothing passes
    lead_to(url)          later connections lead to another server

    `note` is called for each fault.
    """

    def __init__(self, url: str, note: Callable[[str], None] = lambda fault: None) -> None:
        self.lead_to(url)
        self._note = note
        self._loop = LoopThread("proxy")
        self._passages: set[_ProxyConnection] = set()
        self._every = self._answered = self._left = 0
        self._marker = b""
        self._open = asyncio.Event()
        self._open.set()
        self._passed = threading.Event()
        self._listener = self._loop.do(self._listen())
        self.port = self._listener.sockets[0].getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.lost = 0
        """Replies lost so far."""

    def lose_every(self, n: int) -> None:
        self._every, self._answered = n, 0

    def lose(self, times: int, marker: bytes = b"EVAL") -> None:
        self._marker, self._left = marker, times

    def lead_to(self, url: str) -> None:
        self._server_at = urlsplit(url)

    def cut(self) -> None:
        async def cut_all() -> int:
            passages = list(self._passages)
            for connection in passages:
                connection.cut()
            return len(passages)

        if self._loop.do(cut_all()):
            self._note("connections cut")

    def cut_at_random(self, rng: random.Random) -> AbstractContextManager[None]:
        """Cut until the block ends, at most once for each reply that passed: a client goes on, however slow
        the machine is."""

        def cut() -> None:
            if self._passed.wait(BETWEEN_CUTS_S):
                threading.Event().wait(rng.uniform(0, BETWEEN_CUTS_S))
                self.cut()
                self._passed.clear()

        return meanwhile(cut)

    def silence(self, silent: bool) -> None:
        async def switch() -> None:
            self._open.clear() if silent else self._open.set()

        self._loop.do(switch())
        if silent:
            self._note("network silent")

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._connected, "127.0.0.1", 0)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._server_at.scheme == "unix":
                from_server, to_server = await asyncio.open_unix_connection(self._server_at.path)
            else:
                at = self._server_at.hostname, self._server_at.port
                from_server, to_server = await asyncio.open_connection(*at)
        except OSError:
            writer.transport.abort()
            return
        connection = _ProxyConnection(writer, to_server)
        self._passages.add(connection)
        for pump in (self._commands(reader, connection), self._replies(from_server, connection)):
            self._loop.start(pump)

    async def _commands(self, client: asyncio.StreamReader, connection: _ProxyConnection) -> None:
        try:
            while data := await client.read(CHUNK_BYTES):
                await self._open.wait()
                connection.is_doomed = connection.is_doomed or (self._left > 0 and self._marker in data)
                connection.server.write(data)
                await connection.server.drain()
        except OSError:
            pass
        finally:
            connection.cut()
            self._passages.discard(connection)

    async def _replies(self, server: asyncio.StreamReader, connection: _ProxyConnection) -> None:
        held = b""
        try:
            while data := await server.read(CHUNK_BYTES):
                await self._open.wait()
                if connection.is_doomed:
                    self._left -= 1
                    self._count_lost()
                    return
                held += data
                while (end := _end(held, 0)) is not None:
                    self._answered += 1
                    if self._every and self._answered % self._every == 0:
                        self._count_lost()
                        return
                    connection.client.write(held[:end])
                    self._passed.set()
                    held = held[end:]
                await connection.client.drain()
        except OSError:
            pass
        finally:
            await _drain(connection.client)
            connection.cut()

    def _count_lost(self) -> None:
        self.lost += 1
        self._note("reply lost")

    def close(self) -> None:
        """Close all connections and stop listening."""

        async def end() -> None:
            self._listener.close()
            for connection in list(self._passages):
                connection.cut()

        self._loop.do(end())
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
