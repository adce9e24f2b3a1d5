"""One connection: redis-py makes it, and then nothing of redis-py stands between requests and the socket.

How to reach a server (addresses, passwords, TLS, a Sentinel that knows the name) is redis-py's to know. Its
own sending and receiving checks, for each reply, subscriptions, health, metrics and three protocols, which
takes longer than all that a reader of one page has to do. Here a request is one `send`, and its replies are
what hiredis makes of the bytes that come.

A link counts the replies that it is owed. One that is given back while it is owed some (its user was
interrupted, wherever that was) would hand them to the next user as if they were his, so it is never used
again: `check_clean` closes it, and the next request makes a new connection.

Time-outs are Python's own (`settimeout`), for each time that the socket is waited for: they hold under
signals, which interrupt the system's, and with sockets that gevent or eventlet put in place of them. A
request is first written without asking whether there is room, which there nearly always is. A reply is
first looked for a few times without sleeping: a server on the same machine answers before a sleeping process
would have been woken (a page takes 40 us instead of 120). Where the server is farther away the looks find
nothing, so after such a miss the next replies are waited for at once.

The awaiting link is in `_async.link`.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, cast

from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as LostReply

from fdstore.wire.retry import INCOMPLETE, READ_SIZE_BYTES, make_reader, refuses_service

FINISH_S = 1.0
LOOKS = 32
"""How often a reply is looked for before its reader sleeps: about 30 us."""
MISS_COSTS = 16
"""How many replies are waited for without looking after looks that found nothing."""


class Link:
    """A connection, made when it is first needed, and again after it was lost. Raises redis-py's errors."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.owed = 0
        """How many replies are on their way."""
        self.refused = False
        """Whether a reply was an error, or has one in it, since a request was sent last."""
        self._sock: socket.socket | None = None
        self._write: Callable[[bytes], int]
        self._read: Callable[[], int]
        self._reader: Any = None
        self._timeouts_s = (connection.socket_connect_timeout, connection.socket_timeout)
        self._buffer = bytearray(READ_SIZE_BYTES)

    @property
    def is_connected(self) -> bool:
        return self._sock is not None

    def connect(self, limit_s: float | None = None) -> socket.socket:
        """Connect, trying once, for at most `limit_s` seconds each time that the socket is waited for."""
        self.disconnect()  # what an interrupted attempt left: it may not have chosen the database yet
        connection = self.connection
        to_connect, to_reply = self._timeouts_s
        connection.socket_connect_timeout = min(to_connect, limit_s or to_connect)
        connection.socket_timeout = min(to_reply, limit_s or to_reply)
        connection.connect()
        self._reader = make_reader(self._take_refusal)
        sock = cast("socket.socket", connection._sock)
        sock.settimeout(to_reply)
        if isinstance(sock, ssl.SSLSocket):
            self._write, self._read = sock.send, partial(sock.recv_into, self._buffer)
        else:
            self._write = partial(os.write, sock.fileno())
            self._read = _looking(sock, self._buffer)
        self._sock = sock
        return sock

    def _take_refusal(self, message: str) -> Exception:
        self.refused = True
        error: Exception = self.connection._parser.parse_error(message)
        return error

    def disconnect(self) -> None:
        self._sock = None
        self.connection.disconnect()
        self.owed = 0

    close = disconnect

    def finish(self, wait_s: float = FINISH_S) -> None:
        """Close the connection once the server has done what was sent, or after `wait_s` seconds without a
        word from it."""
        sock = self._sock
        if sock is not None and self.owed:
            with suppress(OSError):
                sock.settimeout(wait_s)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv_into(self._buffer):
                    pass  # replies that nobody waits for; the end comes after the last of them
        self.disconnect()

    def check_clean(self) -> Link:
        """Close the connection if there are replies on their way that nobody waits for."""
        if self.owed:
            self.disconnect()
        return self

    def send(self, request: bytes, count: int, wait_s: float | None = None) -> None:
        """Send a packed request that has `count` replies, connected or not before."""
        sock = self._sock or self.connect(wait_s)
        self.refused = False
        self.owed += count
        done = 0
        try:
            try:
                done = self._write(request)
            except BlockingIOError:
                done = sock.send(request)
            if done < len(request):
                sock.sendall(memoryview(request)[done:])
        except OSError as error:
            self.owed -= 0 if done else count
            raise _lost(error) from error

    def receive(self, replies: list[Any], count: int, wait_s: float | None = None) -> None:
        """Add the next replies, waiting at most `wait_s` seconds for bytes to come; those that came before
        the connection is lost, too. An error among them is redis-py's exception for it, not raised, unless
        it says that the server serves nobody now."""
        sock, reader, buffer = self._sock, self._reader, self._buffer
        if sock is None:
            raise LostConnection("it was closed")
        read = self._read
        try:
            if wait_s is not None:
                sock.settimeout(wait_s)
            for _ in range(count):
                while (reply := reader.gets()) is INCOMPLETE:
                    reader.feed(buffer, 0, read() or _closed())
                if self.refused and (error := refuses_service(reply)):
                    raise error
                replies.append(reply)
            if wait_s is not None:
                sock.settimeout(self._timeouts_s[1])
        except OSError as error:
            raise _lost(error) from error
        self.owed -= count

    def ask(self, request: bytes, replies: list[Any], count: int) -> None:
        """Send a packed request and receive its replies: `send` and `receive` in one call."""
        if self._sock is None:
            self.connect()
        read, reader, buffer = self._read, self._reader, self._buffer
        self.refused = False
        self.owed = count
        try:
            if self._write(request) < len(request):
                raise LostConnection("it took a part of a small request")
            reader.feed(buffer, 0, read() or _closed())
            while len(replies) < count:
                reply = reader.gets()
                if reply is INCOMPLETE:
                    reader.feed(buffer, 0, read() or _closed())
                elif self.refused and (error := refuses_service(reply)):
                    raise error
                else:
                    replies.append(reply)
        except OSError as error:
            raise _lost(error) from error
        self.owed = 0


def _looking(sock: socket.socket, buffer: bytearray) -> Callable[[], int]:
    """Make the function that reads what has come into `buffer`, and waits for it if need be."""
    look = partial(os.readv, sock.fileno(), [buffer])
    waits_left = 0

    def read() -> int:
        nonlocal waits_left
        if waits_left:
            waits_left -= 1
        else:
            for _ in range(LOOKS):
                try:
                    return look()
                except BlockingIOError:
                    pass
            waits_left = MISS_COSTS
        return sock.recv_into(buffer)

    return read


def _closed() -> NoReturn:
    raise LostConnection("it closed the connection")


def _lost(error: OSError) -> RedisError:
    if isinstance(error, TimeoutError):
        return LostReply("no reply in time")
    return LostConnection(f"the connection failed: {error}")
