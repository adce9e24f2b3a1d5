"""A connection as operations use it, with a server of the test at the other end."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from redis.connection import UnixDomainSocketConnection
from redis.exceptions import (
    BusyLoadingError,
    MasterDownError,
    NoScriptError,
    ReadOnlyError,
    ResponseError,
)
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as LostReply

from fdstore.wire._sync.link import Link, _is_local
from fdstore.wire.connection_options import connection_options
from tests.waiting import PATIENCE_S, stretched

TIMEOUT_S = stretched(0.1)
OPTIONS = connection_options() | {"socket_timeout": TIMEOUT_S}


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(PATIENCE_S)
        made.bind(str(tmp_path / "socket"))
        made.listen()
        yield made


@pytest.fixture
def link(listener: socket.socket) -> Iterator[Link]:
    # connecting sends nothing: no SELECT, no CLIENT SETNAME, no HELLO
    unix: Any = UnixDomainSocketConnection
    made = Link(partial(unix, path=listener.getsockname(), **OPTIONS))
    yield made
    made.disconnect()


@pytest.fixture
def server(listener: socket.socket, link: Link) -> Iterator[socket.socket]:
    """The other end of the link."""
    link.send(b"hello", 1)
    accepted, _ = listener.accept()
    with accepted:
        assert accepted.recv(100) == b"hello"
        yield accepted


def received(link: Link, count: int, wait_s: float | None = None) -> list[Any]:
    replies: list[Any] = []
    link.receive(replies, count, wait_s)
    return replies


def test_it_connects_when_it_is_first_used(link: Link, listener: socket.socket) -> None:
    assert not link.is_connected

    link.send(b"onerequest", 1)

    assert link.is_connected
    with listener.accept()[0] as server:
        assert server.recv(10, socket.MSG_WAITALL) == b"onerequest"


def test_replies_may_come_in_any_pieces(link: Link, server: socket.socket) -> None:
    server.sendall(b"$5\r\nfirst\r\n:2\r\n*2\r\n$1\r\na\r\n$-1\r\n+the beginning of ")

    assert received(link, 3) == [b"first", 2, [b"a", None]]

    server.sendall(b"a fourth\r\n")
    assert received(link, 1) == [b"the beginning of a fourth"]


def test_an_error_is_a_reply_like_others(link: Link, server: socket.socket) -> None:
    server.sendall(b"-NOSCRIPT no such script\r\n+after\r\n")

    unknown, after = received(link, 2)

    assert isinstance(unknown, NoScriptError)
    assert after == b"after"


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
def test_a_server_that_refuses_service_counts_as_connection_lost(
    link: Link, server: socket.socket, said: bytes, error: type[Exception]
) -> None:
    server.sendall(b"+before\r\n" + said)
    replies: list[Any] = []

    with pytest.raises(error):
        link.receive(replies, 3)

    assert replies == [b"before"]


def test_a_missing_reply_counts_as_connection_lost(link: Link, server: socket.socket) -> None:
    server.sendall(b"$5\r\nfi")

    with pytest.raises(LostReply):
        received(link, 1)


def test_a_blocking_command_extends_the_reply_time_out(link: Link, server: socket.socket) -> None:
    later = threading.Timer(3 * TIMEOUT_S, server.sendall, [b"+OK\r\n"])
    later.start()

    assert received(link, 1, wait_s=30) == [b"OK"]

    later.join()
    with pytest.raises(LostReply):
        received(link, 1)


def test_a_server_that_closes_counts_as_connection_lost(link: Link, server: socket.socket) -> None:
    server.sendall(b"+whole\r\n+torn")
    server.close()

    assert received(link, 1) == [b"whole"]
    with pytest.raises(LostConnection):
        received(link, 1)
    with pytest.raises(LostConnection):
        link.send(b"more", 1)


def test_data_of_a_lost_connection_is_not_read_on_the_next(
    link: Link, server: socket.socket, listener: socket.socket
) -> None:
    server.sendall(b"+whole\r\n+torn")
    assert received(link, 1) == [b"whole"]

    link.disconnect()

    with pytest.raises(LostConnection):
        received(link, 1)
    link.send(b"again", 1)
    with listener.accept()[0] as second:
        second.sendall(b"+afresh\r\n")
        assert received(link, 1) == [b"afresh"]


@contextmanager
def signals(handler: Callable[[int, object], None], send: Callable[[], object]) -> Iterator[None]:
    """Handle SIGUSR1 by `handler` in the block, during which a thread runs `send`."""
    before = signal.signal(signal.SIGUSR1, handler)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)


def send_signal_later() -> None:
    threading.Event().wait(TIMEOUT_S / 2)
    os.kill(os.getpid(), signal.SIGUSR1)


def test_a_signal_does_not_end_the_wait(link: Link, server: socket.socket) -> None:
    seen: list[int] = []
    answer = threading.Timer(TIMEOUT_S, server.sendall, [b"+OK\r\n"])

    with signals(lambda number, frame: seen.append(number), send_signal_later):
        answer.start()
        assert received(link, 1, wait_s=30) == [b"OK"]

    answer.join()
    assert seen == [signal.SIGUSR1]


def test_signals_that_keep_coming_do_not_prolong_the_wait(link: Link, server: socket.socket) -> None:
    over = threading.Event()

    def send_signals() -> None:
        while not over.wait(TIMEOUT_S / 5):
            os.kill(os.getpid(), signal.SIGUSR1)

    with signals(lambda number, frame: None, send_signals):
        try:
            with pytest.raises(LostReply):
                received(link, 1)
        finally:
            over.set()


def test_an_interrupted_link_knows_that_a_reply_is_outstanding(link: Link, server: socket.socket) -> None:
    class Stop(BaseException):
        pass

    def stop(number: int, frame: object) -> None:
        raise Stop

    with signals(stop, send_signal_later), pytest.raises(Stop):
        received(link, 1, wait_s=30)

    assert link.is_connected
    assert link.owed == 1


def test_a_server_that_stops_reading_counts_as_connection_lost(link: Link, server: socket.socket) -> None:
    with pytest.raises(LostReply):
        link.send(b"x" * 50_000_000, 1)


def test_the_error_flag_is_reset_for_each_request(link: Link, server: socket.socket) -> None:
    server.sendall(b"*2\r\n+fine\r\n-ERR inside\r\n")
    received(link, 1)
    assert link.refused

    server.sendall(b"+OK\r\n")
    link.send(b"again", 1)

    assert received(link, 1) == [b"OK"]
    assert not link.refused


class CountingSocket(socket.socket):
    """Counts how often it was waited for; polls read its file descriptor."""

    waits = 0

    def recv_into(self, *args: Any, **options: Any) -> int:
        self.waits += 1
        return super().recv_into(*args, **options)


def test_a_reply_that_is_there_is_polled_for_and_a_late_one_waited_for(
    link: Link, server: socket.socket
) -> None:
    assert link._sock is not None
    with CountingSocket(fileno=os.dup(link._sock.fileno())) as counting:
        counting.settimeout(TIMEOUT_S)
        link._sock = counting

        server.sendall(b"+OK\r\n")
        assert received(link, 1) == [b"OK"]
        assert counting.waits == 0

        with pytest.raises(LostReply):
            received(link, 1)
        assert counting.waits == 1


def test_a_connection_that_is_lost_already_is_found_lost_by_its_first_request() -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:
        ours = socket.create_connection(there.getsockname())
        assert _is_local(ours)
        ours.close()

    with socket.socket() as unconnected:
        assert not _is_local(unconnected)
