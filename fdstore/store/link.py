"""One connection: redis-py makes it, and then nothing of redis-py stands between requests and the socket.

How to reach a server (addresses, passwords, TLS, a Sentinel that knows the name) is redis-py's to know. Its
own sending and receiving looks, for each reply anew, after subscriptions, health checks, metrics and
three protocols, which takes longer than all that a reader of one page has to do. Here a request is one
`sendall`, and its replies are what hiredis makes of the bytes that come.
"""

from __future__ import annotations

import socket
import struct
from typing import Any, NoReturn, cast

import hiredis
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import InvalidResponse, RedisError
from redis.exceptions import TimeoutError as LostReply

from fdstore.store.wire import READ_SIZE_BYTES

_TIMEVAL = struct.Struct("@ll")
"""Seconds and microseconds, as the kernel takes them."""

_NOT_YET = object()
"""What the reader gives while a reply is not whole."""


class Link:
    """A connection, made when it is first needed, and again after it was lost. Raises redis-py's errors."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._sock: socket.socket | None = None
        self._reader: Any = None
        self.refused = False
        """Whether a reply was an error, or has one in it, since a request was sent last."""
        self._buffer = bytearray(READ_SIZE_BYTES)

    @property
    def is_connected(self) -> bool:
        return self._sock is not None

    def connect(self) -> socket.socket:
        """Connects, trying once."""
        self.connection.connect()
        self._reader = hiredis.Reader(
            protocolError=InvalidResponse,
            replyError=self._refusal,
            notEnoughData=_NOT_YET,
        )
        sock = self._sock = cast("socket.socket", self.connection._sock)
        self._wait_at_most(self.connection.socket_timeout)
        return sock

    def _wait_at_most(self, seconds: float) -> None:
        """How long sending and receiving wait. Python asks before each of them whether it would wait, and
        for how long; where the socket is the system's own, the kernel keeps the time without being asked."""
        sock = self._sock
        if type(sock) is socket.socket:
            sock.settimeout(None)
            limit = _TIMEVAL.pack(int(seconds), int(seconds % 1 * 1e6))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        elif sock is not None:
            sock.settimeout(seconds)

    def _refusal(self, message: str) -> Exception:
        self.refused = True
        error: Exception = self.connection._parser.parse_error(message)
        return error

    def disconnect(self) -> None:
        self._sock = None
        self.connection.disconnect()

    def send(self, request: bytes) -> None:
        """Sends a packed request, connected or not before."""
        sock = self._sock or self.connect()
        self.refused = False
        try:
            sock.sendall(request)
        except OSError as error:
            raise _lost(error) from error

    def receive(self, replies: list[Any], count: int, held_s: float = 0.0) -> None:
        """Adds the next replies, where the server may hold one back for `held_s`; those that came before
        the connection is lost, too. An error among them is redis-py's exception for it, not raised, unless
        it says that the server serves nobody now."""
        sock, reader, buffer = self._sock, self._reader, self._buffer
        if sock is None:
            raise LostConnection("it was closed")
        if held_s:
            self._wait_at_most(self.connection.socket_timeout + held_s)
        try:
            for _ in range(count):
                while (reply := reader.gets()) is _NOT_YET:
                    reader.feed(buffer, 0, sock.recv_into(buffer) or _closed())
                if self.refused and isinstance(reply, LostConnection):
                    raise reply  # by its class: the server says that it serves nobody now
                replies.append(reply)
        except OSError as error:
            raise _lost(error) from error
        if held_s:
            self._wait_at_most(self.connection.socket_timeout)

    def ask(self, request: bytes, replies: list[Any], count: int) -> None:
        """Send a packed request and receive its replies: `send` and `receive` in one call."""
        sock = self._sock or self.connect()
        reader, buffer = self._reader, self._buffer
        self.refused = False
        try:
            sock.sendall(request)
            reader.feed(buffer, 0, sock.recv_into(buffer) or _closed())
            while len(replies) < count:
                reply = reader.gets()
                if reply is _NOT_YET:
                    reader.feed(buffer, 0, sock.recv_into(buffer) or _closed())
                elif self.refused and isinstance(reply, LostConnection):
                    raise reply
                else:
                    replies.append(reply)
        except OSError as error:
            raise _lost(error) from error


def _closed() -> NoReturn:
    raise LostConnection("it closed the connection")


def _lost(error: OSError) -> RedisError:
    """What a time that is over is called: by Python, or by the kernel; and all else."""
    if isinstance(error, (TimeoutError, BlockingIOError)):
        return LostReply("no reply in time")
    return LostConnection(f"the connection failed: {error}")
