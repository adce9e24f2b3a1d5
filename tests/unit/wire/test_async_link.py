"""An async connection as operations use it, with a server of the test at the other end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio.connection import UnixDomainSocketConnection
from redis.exceptions import (
    BusyLoadingError,
    MasterDownError,
    NoScriptError,
    ReadOnlyError,
    ResponseError,
)
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as LostReply

from fdstore.wire._async.link import Link
from fdstore.wire.connection_options import connection_options
from tests.waiting import PATIENCE_S, stretched

TIMEOUT_S = stretched(0.1)
OPTIONS = connection_options() | {"socket_timeout": TIMEOUT_S}


class Server:
    """The server side: the data received on its last connection, and a way to reply."""

    def __init__(self) -> None:
        self.connections: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._connected = asyncio.Event()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append((reader, writer))
        self._connected.set()

    async def received(self, size: int) -> bytes:
        await asyncio.wait_for(self._connected.wait(), PATIENCE_S)
        return await asyncio.wait_for(self.connections[-1][0].readexactly(size), PATIENCE_S)

    def answer(self, data: bytes) -> None:
        self.connections[-1][1].write(data)

    def hang_up(self) -> None:
        self.connections[-1][1].close()


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[tuple[Link, Server]]:
    """A link, and the server at its other end."""
    server = Server()
    path = str(folder / "socket")
    listener = await asyncio.start_unix_server(server.accept, path)
    link = Link(partial(UnixDomainSocketConnection, path=path, **OPTIONS))
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield link, server
    finally:
        await link.close()
        for _, writer in server.connections:
            writer.close()
        listener.close()


async def sent(link: Link, server: Server, count: int = 1) -> None:
    await link.send(b"request", count)
    assert await server.received(7) == b"request"


async def received(link: Link, count: int, wait_s: float | None = None) -> list[Any]:
    replies: list[Any] = []
    await link.receive(replies, count, wait_s)
    return replies


async def test_it_connects_when_it_is_first_used(tmp_path: Path) -> None:
    async with connected(tmp_path) as (link, server):
        assert not link.is_connected
        await sent(link, server)
        assert link.is_connected


async def test_replies_may_come_in_any_pieces(tmp_path: Path) -> None:
    async with connected(tmp_path) as (link, server):
        await sent(link, server, 4)
        server.answer(b"$5\r\nfirst\r\n:2\r\n*2\r\n$1\r\na\r\n$-1\r\n+the beginning of ")
        assert await received(link, 3) == [b"first", 2, [b"a", None]]
        server.answer(b"a fourth\r\n")
        assert await received(link, 1) == [b"the beginning of a fourth"]
        assert link.owed == 0


async def test_an_error_is_a_reply_like_others(tmp_path: Path) -> None:
    async with connected(tmp_path) as (link, server):
        await sent(link, server, 2)
        server.answer(b"-NOSCRIPT no such script\r\n+after\r\n")
        unknown, after = await received(link, 2)
        assert isinstance(unknown, NoScriptError)
        assert (after, link.refused) == (b"after", True)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"-LOADING the data set\r\n", BusyLoadingError),
        (b"-READONLY You can't write against a read only replica.\r\n", ReadOnlyError),
        (b"-ERR Error running script: @user_script:1: -READONLY You can't write\r\n", ReadOnlyError),
        (b"-BUSY Redis is busy running a script.\r\n", ResponseError),
        (b"-MASTERDOWN Link with MASTER is down\r\n", MasterDownError),
        (b"-NOREPLICAS Not enough good replicas to write.\r\n", ResponseError),
        (b"-ERR Error running script: @user_script:1: -NOREPLICAS Not enough\r\n", ResponseError),
        (b"*2\r\n+OK\r\n-NOREPLICAS Not enough good replicas to write.\r\n", ResponseError),
        (b"-EXECABORT Transaction discarded because of: READONLY You can't write\r\n", ReadOnlyError),
        (b"-UNBLOCKED force unblock from blocking operation\r\n", ResponseError),
    ],
)
async def test_a_server_that_refuses_service_counts_as_connection_lost(
    tmp_path: Path, said: bytes, error: Any
) -> None:
    async with connected(tmp_path) as (link, server):
        await sent(link, server, 3)
        server.answer(b"+before\r\n" + said)
        replies: list[Any] = []
        with pytest.raises(error):
            await link.receive(replies, 2)
        assert replies == [b"before"]


@pytest.mark.parametrize("begun", [b"", b"$5\r\nfi"])
async def test_a_missing_reply_counts_as_connection_lost(tmp_path: Path, begun: bytes) -> None:
    async with connected(tmp_path) as (link, server):
        await sent(link, server)
        server.answer(begun)
        with pytest.raises(LostReply):
            await received(link, 1)
        assert not link.is_connected


async def test_a_blocking_command_extends_the_reply_time_out(tmp_path: Path) -> None:
    async with connected(tmp_path) as (link, server):
        await sent(link, server, 2)
        asyncio.get_running_loop().call_later(3 * TIMEOUT_S, server.answer, b"+OK\r\n")
        assert await received(link, 1, wait_s=30) == [b"OK"]
        with pytest.raises(LostReply):
            await received(link, 1)


async def test_a_server_that_closes_counts_as_connection_lost(tmp_path: Path) -> None:
    async with connected(tmp_path) as (link, server):
        await sent(link, server, 2)
        server.answer(b"+whole\r\n+torn")
        server.hang_up()
        assert await received(link, 1) == [b"whole"]
        with pytest.raises(LostConnection):
            await received(link, 1)
        assert not link.is_connected


async def test_data_of_a_lost_connection_is_not_read_on_the_next(tmp_path: Path) -> None:
    async with connected(tmp_path) as (link, server):
        await sent(link, server, 2)
        server.answer(b"+whole\r\n+left over\r\n")
        assert await received(link, 1) == [b"whole"]
        link.disconnect()
        with pytest.raises(LostConnection):
            await received(link, 1)
        await link.send(b"another", 1)
        await asyncio.sleep(0)
        while len(server.connections) < 2:
            await asyncio.sleep(0)
        assert await server.received(7) == b"another"
        server.answer(b"+mine\r\n")
        assert await received(link, 1) == [b"mine"]


async def test_a_cancelled_link_knows_that_a_reply_is_outstanding(tmp_path: Path) -> None:
    async with connected(tmp_path) as (link, server):
        await sent(link, server)
        waiting = asyncio.create_task(received(link, 1))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert link.is_connected
        assert link.owed == 1


async def test_a_server_that_stops_reading_counts_as_connection_lost(tmp_path: Path) -> None:
    async with connected(tmp_path) as (link, _):
        with pytest.raises(LostReply):
            await link.send(b"x" * 50_000_000, 1)


async def test_a_large_request_is_sent_as_fast_as_the_server_reads_it(tmp_path: Path) -> None:
    async with connected(tmp_path) as (link, server):
        request = b"x" * 20_000_000
        sending = asyncio.create_task(link.send(request, 1, 30))
        assert await server.received(len(request)) == request
        await sending
        server.answer(b"+OK\r\n")
        assert await received(link, 1) == [b"OK"]
