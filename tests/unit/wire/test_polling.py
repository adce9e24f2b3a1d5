"""The reader of a blocking connection polls for a reply, or sleeps until it comes."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator

import pytest

from fdstore.wire._sync.link import CHECK_EVERY, CONTENDED_UNPOLLED, _is_local, _polling_reader
from tests.waiting import PATIENCE_S


class CountingSocket(socket.socket):
    """Counts how often it was waited for; polls read its file descriptor."""

    waits = 0

    def recv_into(self, *args, **options) -> int:
        self.waits += 1
        return super().recv_into(*args, **options)


@pytest.fixture
def pair() -> Iterator[tuple[CountingSocket, socket.socket]]:
    ours, server = socket.socketpair()
    with CountingSocket(fileno=ours.detach()) as counting, server:
        counting.settimeout(PATIENCE_S)
        yield counting, server


def exchange(read, server: socket.socket, times: int) -> None:
    for _ in range(times):
        server.send(b"reply")
        assert read() == 5


def test_replies_that_are_there_are_not_waited_for(pair):
    ours, server = pair
    read = _polling_reader(ours, bytearray(10), lambda: 7)

    exchange(read, server, 3 * CHECK_EVERY)

    assert ours.waits == 0


def test_a_reader_whose_cpu_others_wait_for_does_not_poll_for_a_while(pair):
    ours, server = pair
    counter = itertools.count(step=1_000_000)
    read = _polling_reader(ours, bytearray(10), lambda: next(counter))

    exchange(read, server, CHECK_EVERY)
    assert ours.waits == 0
    exchange(read, server, CONTENDED_UNPOLLED)
    assert ours.waits == CONTENDED_UNPOLLED
    exchange(read, server, CHECK_EVERY)
    assert ours.waits == CONTENDED_UNPOLLED


def test_a_late_reply_is_waited_for_and_the_next_ones_are_not_polled_for(pair):
    ours, server = pair
    ours.settimeout(0.01)
    read = _polling_reader(ours, bytearray(10), lambda: 7)

    with pytest.raises(TimeoutError):
        read()
    exchange(read, server, 20)

    # the late one, and 16 more
    assert ours.waits == 17


def test_a_connection_that_is_lost_already_is_found_lost_by_its_first_request():
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        assert _is_local(ours)
        ours.close()

    with socket.socket() as unconnected:
        assert not _is_local(unconnected)
