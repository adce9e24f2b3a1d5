"""One blocking connection: redis-py opens it, then requests bypass redis-py and use the socket directly.

redis-py handles addresses, authentication, TLS and Sentinels. Its own send and receive check subscriptions,
health, metrics and three protocols for each reply, which takes longer than all other work of reading a page.
Here a request is one `send`, and hiredis parses the replies.

A link counts its outstanding replies. If its user was interrupted while some are outstanding, the next user
would receive them as its own: so the runner closes it, and the next request opens a new connection.

Time-outs are Python's own (`settimeout`), one for each wait on the socket: they work when signals interrupt
system calls, and with the sockets of gevent or eventlet. A request is first written without polling for
room, which there nearly always is.

A server on the same machine answers before a sleeping process would be woken, so its reader first polls for a
moment (a page takes 40 us instead of 90). Between two polls it gives its CPU to whoever waits for it.

The asynchronous link is in `_async.link`.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from time import perf_counter_ns
from typing import Any, NoReturn, cast

from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as LostReply

from fdstore.wire._sync.support import connect_within
from fdstore.wire.connection_options import READ_SIZE_BYTES, discard_unsent, take_whole_requests
from fdstore.wire.packing import INCOMPLETE, make_reader
from fdstore.wire.redis_errors import WAITED_FOR, Codes, refusal_in

FINISH_S = 1.0
POLL_NS, LONG_POLL_NS = 100_000, 400_000
"""How long a reader polls for a reply of a server on this machine before it sleeps: to a small request, as
for a page, and to another one. A script takes such a server 100 us, a text of 100 KB 250 us."""

SMALL_BYTES = 400
"""The size below which a request is small. One for a page has 150 to 300 bytes."""


class Link:
    """A connection that is opened on first use, and again after it was lost. Raises redis-py's errors.

    make        returns a connection of redis-py
    patience_s  how long one attempt to connect may take in all; None: each of its waits has the time-out of
                `connection_options`
    """

    def __init__(self, make: Callable[[], Any], patience_s: float | None = None) -> None:
        self._make = make
        self._patience_s = patience_s
        self.connection = make()
        self.owed = 0
        """The number of outstanding replies."""
        self.refused = False
        """True if the last request got a reply that is or contains an error."""
        self._poll_ns = POLL_NS
        self.waits_for: Codes = WAITED_FOR
        """The refusals that its user waits for: `receive` raises them."""
        self._sock: socket.socket | None = None
        self._write: Callable[[bytes], int]
        self._read: Callable[[], int]
        self._reader: Any = None
        to_connect, to_reply = self.connection.socket_connect_timeout, self.connection.socket_timeout
        if patience_s is not None:
            to_connect, to_reply = min(to_connect, patience_s), min(to_reply, patience_s)
        self._timeouts_s = (to_connect, to_reply)
        self._buffer = bytearray(READ_SIZE_BYTES)

    @property
    def is_connected(self) -> bool:
        return self._sock is not None

    def connect(self, limit_s: float | None = None) -> socket.socket:
        """Connect, with one attempt; each wait for the socket is at most `limit_s` seconds, with patience
        all of them together."""
        self.disconnect()  # an interrupted attempt may have left a connection before SELECT
        connection = self.connection
        to_connect, to_reply = self._timeouts_s
        connection.socket_connect_timeout = min(to_connect, limit_s or to_connect)
        connection.socket_timeout = min(to_reply, limit_s or to_reply)
        if self._patience_s is None:
            connection.connect()
        else:
            within_s = min(self._patience_s, limit_s or self._patience_s)
            self.connection = self._make()  # unless it succeeds, a thread may still be using the other one
            connect_within(connection, within_s)
            self.connection = connection
        self._reader = make_reader(self._take_refusal)
        sock = cast("socket.socket", connection._sock)
        take_whole_requests(sock)
        sock.settimeout(to_reply)
        wait = partial(sock.recv_into, self._buffer)
        if isinstance(sock, ssl.SSLSocket):
            self._write, self._read = sock.send, wait
        else:
            self._write = partial(os.write, sock.fileno())
            self._read = partial(os.readv, sock.fileno(), [self._buffer]) if _is_local(sock) else wait
        self._sock = sock
        return sock

    def _take_refusal(self, message: str) -> Exception:
        self.refused = True
        error: Exception = self.connection._parser.parse_error(message)
        return error

    def disconnect(self) -> None:
        """Close the connection, and discard what was not sent of requests without a reply."""
        if self.owed and self._sock is not None:
            discard_unsent(self._sock)
        self._sock = None
        self.connection.disconnect()
        self.owed = 0

    close = disconnect

    def finish(self, wait_s: float = FINISH_S) -> None:
        """Close the connection after the server has executed the requests sent, or has sent nothing for
        `wait_s` seconds."""
        sock, wait_s = self._sock, min(wait_s, self._timeouts_s[1])
        if sock is not None and self.owed:
            with suppress(OSError):
                sock.settimeout(wait_s)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv_into(self._buffer):
                    pass  # discard replies until the server closes the connection after the last
        self.disconnect()

    def send(self, request: bytes, count: int, wait_s: float | None = None) -> None:
        """Send a packed request that has `count` replies; connect first if needed."""
        sock = self._sock or self.connect(wait_s)
        self.refused = False
        self.owed += count
        done, size = 0, len(request)
        self._poll_ns = POLL_NS if size < SMALL_BYTES else LONG_POLL_NS
        try:
            try:
                done = self._write(request)
            except BlockingIOError:
                done = sock.send(request)
            if done < size:
                sock.sendall(memoryview(request)[done:])
        except OSError as error:
            self.owed -= 0 if done else count
            raise _lost(error) from error

    def receive(self, replies: list[Any], count: int, wait_s: float | None = None) -> None:
        """Append the next replies, waiting at most `wait_s` seconds for bytes; replies that arrived before
        the connection is lost are appended too. An error reply is appended as redis-py's exception; it is
        raised only if the server refuses all service."""
        sock, reader, buffer = self._sock, self._reader, self._buffer
        if sock is None:
            raise LostConnection("it was closed")
        read, polls_until = self._read, perf_counter_ns() + self._poll_ns
        try:
            if wait_s is not None:
                sock.settimeout(wait_s)
            for _ in range(count):
                while (reply := reader.gets()) is INCOMPLETE:
                    try:
                        received = read()
                    except BlockingIOError:
                        if perf_counter_ns() < polls_until:
                            os.sched_yield()
                            continue
                        received = sock.recv_into(buffer)
                    reader.feed(buffer, 0, received or _closed())
                if self.refused and (error := refusal_in(reply, self.waits_for)):
                    raise error
                replies.append(reply)
            if wait_s is not None:
                sock.settimeout(self._timeouts_s[1])
        except OSError as error:
            raise _lost(error) from error
        self.owed -= count


def _is_local(sock: socket.socket) -> bool:
    """Return whether the peer is on this machine, as far as its address shows."""
    if sock.family == socket.AF_UNIX:
        return True
    try:
        return ip_address(sock.getpeername()[0]).is_loopback
    except OSError:
        return False  # the peer has closed the connection, as the first request will find


def _closed() -> NoReturn:
    raise LostConnection("it closed the connection")


def _lost(error: OSError) -> RedisError:
    if isinstance(error, TimeoutError):
        return LostReply("no reply in time")
    return LostConnection(f"the connection failed: {error}")
