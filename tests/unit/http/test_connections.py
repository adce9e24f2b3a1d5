"""Slow clients of an HTTP server, or many, do nothing to others."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from fdstore.errors import InvalidArgument
from fdstore.http.address import listen
from fdstore.http.connections import Connection, OncePerMinute, possible_connections
from fdstore.http.server import HttpServer
from fdstore.setup.settings import HttpLimits, read_http
from tests.waiting import PATIENCE_S, wait_until

PATIENT = 3600.0
"""A deadline that no test reaches."""

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
PART, BIG = 4 << 20, 32 << 20
"""More bytes than the buffers of the system take for a client that does not read."""


class App:
    """An app with a short answer at `/`, a long one at `/big`, at `/hold` one that waits for `release`."""

    def __init__(self, limits: HttpLimits) -> None:
        self.stopping = asyncio.Event()
        self.held = 0
        self.server = HttpServer(self, self.stopping, limits=limits)

    def release(self) -> None:
        self._loop.call_soon_threadsafe(self.stopping.set)

    def run(self, listening: socket.socket) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await self.server.serve([listening])

        asyncio.run(serve())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        while (await receive()).get("more_body"):
            pass
        body = b"x" * BIG if scope["path"] == "/big" else b"ok"
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        if scope["path"] == "/hold":
            self.held += 1
            await self.stopping.wait()
        await send({"type": "http.response.body", "body": body})


Connect = Callable[..., socket.socket]


@contextmanager
def serving(*, connections: int = 8, request_s: float = PATIENT) -> Iterator[tuple[App, Connect]]:
    """Serve an `App`; yields it with a function that connects and sends some bytes."""
    with ExitStack() as stack:
        listening = stack.enter_context(listen("127.0.0.1", 0))
        address = listening.getsockname()
        app = App(HttpLimits(connections, request_s))
        thread = threading.Thread(target=app.run, args=(listening,))
        thread.start()

        def connect(sent: bytes = b"") -> socket.socket:
            client = stack.enter_context(socket.create_connection(address, timeout=PATIENCE_S))
            client.sendall(sent)
            return client

        try:
            yield app, connect
        finally:
            app.server.should_exit = True
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "the server did not end"


def received(client: socket.socket) -> bytes:
    """Return what the server sends until it closes the connection."""
    chunks = []
    try:
        while chunk := client.recv(1 << 20):
            chunks.append(chunk)
    except ConnectionResetError:
        pass
    return b"".join(chunks)


def is_answered(client: socket.socket) -> bool:
    return client.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
    ],
)
def test_a_client_that_does_not_send_its_whole_request_is_disconnected(sent: bytes) -> None:
    with serving(request_s=0.2) as (_, connect):
        client = connect(sent)

        assert received(client) == b""


def test_a_second_request_that_is_not_whole_is_disconnected() -> None:
    with serving(request_s=0.2) as (_, connect):
        client = connect(GET)
        assert is_answered(client)
        client.sendall(b"GET / HT")

        assert received(client).endswith(b"ok")


def test_a_client_that_does_not_read_its_response_is_disconnected() -> None:
    with serving(request_s=0.2) as (app, connect):
        client = connect(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        assert is_answered(client)

        wait_until(lambda: not app.server.server_state.connections, what="the end of the connection")
        assert len(received(client)) < BIG


@pytest.mark.thorough("seconds of waiting")
def test_a_client_that_reads_slowly_gets_all_of_its_response() -> None:
    with serving(request_s=2) as (app, connect):
        client = connect(b"GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert is_answered(client)
        [connection] = app.server.server_state.connections
        assert isinstance(connection, Connection)

        size = sum(read_until_there_is_more_time(client, connection) for _ in range(2))
        size += len(received(client))

    assert size > BIG


def read_until_there_is_more_time(client: socket.socket, connection: Connection) -> int:
    """Read a part of a response, wait until that has moved the deadline, and return the part's size."""
    wait_until(lambda: connection.closes_at < float("inf"), what="a deadline")
    deadline = connection.closes_at
    size = 0
    while size < PART:
        size += len(client.recv(PART - size))
    wait_until(lambda: connection.closes_at > deadline, what="more time")
    return size


def test_a_response_takes_as_long_as_the_app_needs() -> None:
    with serving(request_s=0.05) as (app, connect):
        client = connect(b"GET /hold HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        wait_until(lambda: app.held, what="the request")
        others = [received(connect(b"GET")) for _ in range(3)]  # each takes until its deadline
        app.release()

        assert others == [b""] * 3
        assert received(client).endswith(b"ok")


def test_slow_clients_keep_no_one_out() -> None:
    with serving(connections=4) as (_, connect):
        slow = [connect(b"GET / HTTP/1.1\r\n") for _ in range(12)]

        assert is_answered(connect(GET))
        for client in slow[:8]:
            assert received(client) == b""


def test_connections_beyond_the_limit_get_503_while_all_are_busy(caplog: pytest.LogCaptureFixture) -> None:
    with serving(connections=2) as (app, connect):
        for _ in range(2):
            connect(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: app.held == 2, what="the requests")

        refused = [received(connect()) for _ in range(20)]

    assert {answer.partition(b"\r\n")[0] for answer in refused} == {b"HTTP/1.1 503 Service Unavailable"}
    assert [each.getMessage() for each in caplog.records].count(
        "all 2 connections are busy: new clients get 503"
    ) <= 1


def test_a_server_ends_at_once_whatever_its_clients_do() -> None:
    with serving() as (app, connect):
        connect()
        connect(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
        assert is_answered(connect(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n"))
        connect(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: app.held, what="the request")
    # `serving` asserts that the server has ended


def test_a_message_of_one_kind_is_logged_once_a_minute() -> None:
    once = OncePerMinute()

    def passes(text: str, at_s: float, error: BaseException | None = None) -> bool:
        failure = None if error is None else (type(error), error, None)
        record = logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, text, (at_s,), failure)
        record.created = at_s
        return once.filter(record)

    assert [passes("failed at %s", at_s) for at_s in (0, 1, 59, 60, 61)] == [True, False, False, True, False]
    assert passes("other", 1)
    assert passes("failed at %s", 1, ValueError())
    assert not passes("failed at %s", 500, asyncio.CancelledError())


def test_connections_leave_room_for_other_files() -> None:
    assert possible_connections(1) == 1
    assert possible_connections(10**9) < 10**9


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CONNECTIONS", "0"),
        ("CONNECTIONS", "many"),
        ("CONNECTIONS", "1.5"),
        ("REQUEST_S", "nan"),
        ("REQUEST_S", "-1"),
    ],
)
def test_limits_that_are_no_numbers_are_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidArgument, match=name):
        read_http({f"FDSTORE_HTTP_{name}": text})


def test_a_connection_sends_an_answer_at_once() -> None:
    """Else its body waits for the acknowledgement of its head, which clients delay by 40 ms."""
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
