"""One connection: redis-py makes it, and then nothing of redis-py stands between requests and the socket.

How to reach a server (addresses, passwords, TLS, a Sentinel that knows the name) is redis-py's to know. Its
own sending and receiving looks, for each reply anew, after subscriptions, health checks, metrics and
three protocols, which takes longer than all that a reader of one page has to do. Here a request is one
`sendall`, and its replies are what hiredis makes of the bytes that come.
"""

from __future__ import annotations

import socket
from typing import Any, cast

import hiredis
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import InvalidResponse
from redis.exceptions import TimeoutError as LostReply

from fdstore.store.wire import READ_SIZE_BYTES

_NOT_YET = object()
"""What the reader gives while a reply is not whole."""


class Link:
    """A connection, made when it is first needed, and again after it was lost. Raises redis-py's errors."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._sock: socket.socket | None = None
        self._reader: Any = None
        self._buffer = bytearray(READ_SIZE_BYTES)

    @property
    def is_connected(self) -> bool:
        return self._sock is not None

    def connect(self) -> socket.socket:
        """Connects, trying once."""
        self.connection.connect()
        self._reader = hiredis.Reader(
            protocolError=InvalidResponse,
            replyError=self.connection._parser.parse_error,
            notEnoughData=_NOT_YET,
        )
        sock = self._sock = cast("socket.socket", self.connection._sock)
        return sock

    def disconnect(self) -> None:
        self._sock = None
        self.connection.disconnect()

    def send(self, request: bytes) -> None:
        """Sends a packed request, connected or not before."""
        sock = self._sock or self.connect()
        try:
            sock.sendall(request)
        except TimeoutError as error:
            raise LostReply("it took no more in time") from error
        except OSError as error:
            raise LostConnection(f"sending failed: {error}") from error

    def receive(self, replies: list[Any], count: int, held_s: float = 0.0) -> None:
        """Adds the next replies, where the server may hold one back for `held_s`; those that came before
        the connection is lost, too. An error among them is redis-py's exception for it, not raised, unless
        it says that the server serves nobody now."""
        sock = self._sock
        if sock is None:
            raise LostConnection("it was closed")
        if held_s:
            sock.settimeout(self.connection.socket_timeout + held_s)
        try:
            for _ in range(count):
                while (reply := self._reader.gets()) is _NOT_YET:
                    size = sock.recv_into(self._buffer)
                    if not size:
                        raise LostConnection("it closed the connection")
                    self._reader.feed(self._buffer, 0, size)
                if isinstance(reply, LostConnection):
                    raise reply  # by its class: the server says that it serves nobody now
                replies.append(reply)
        except TimeoutError as error:
            raise LostReply("no reply in time") from error
        except OSError as error:
            raise LostConnection(f"receiving failed: {error}") from error
        if held_s:
            sock.settimeout(self.connection.socket_timeout)
