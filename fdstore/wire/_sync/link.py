"""One blocking connection: redis-py opens it, then requests bypass redis-py and use the socket directly.

redis-py handles addresses, authentication, TLS and Sentinels. Its own send and receive check subscriptions,
health, metrics and three protocols for each reply, which takes longer than all other work of reading a page.
Here a request is one `send`, and hiredis parses the replies.

A link counts its outstanding replies. If it is returned to the pool with some outstanding (its user was
interrupted), the next user would receive them as its own, so it is never reused: `check_clean` closes it,
and the next request opens a new connection.

Time-outs are Python's own (`settimeout`), one for each wait on the socket: they work when signals interrupt
system calls, and with the sockets of gevent or eventlet. A request is first written without polling for
room, which there nearly always is. For a reply, the reader first polls without sleeping: a server on the same
machine answers before a sleeping process would be woken (a page takes 40 us instead of 120). If one takes
longer, the next ones are waited for without polling: 16 of them, and up to 256 if that happens again. Readers
that share their CPUs with others do not poll, since a poll takes the time that another one needs to answer or
to ask: eight readers on two CPUs get 40 % more pages.

The asynchronous link is in `_async.link`.
"""

from __future__ import annotations

import os
import resource
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from typing import Any, NoReturn, cast

from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as LostReply

from fdstore.wire._sync.support import connect_within
from fdstore.wire.connection_options import READ_SIZE_BYTES, discard_unsent
from fdstore.wire.packing import INCOMPLETE, make_reader
from fdstore.wire.redis_errors import refuses_service

FINISH_S = 1.0
LOCAL_POLL_NS, REMOTE_POLL_NS = 400_000, 50_000
"""The time that a reader polls for a reply before it sleeps. A server on this machine stores 100 KB in 250
us; longer polls of a remote one would wait for the network."""

MIN_UNPOLLED, MAX_UNPOLLED = 16, 256
"""Number of replies that are waited for without polling after polls in vain: at first, and after it doubled
each time that happened again."""

CHECK_EVERY, CONTENDED_UNPOLLED = 512, 8192
"""After how many polled replies a reader checks whether others wait for its CPU, and how many replies it does
not poll for if they do."""


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
        sock.settimeout(to_reply)
        if isinstance(sock, ssl.SSLSocket):
            self._write, self._read = sock.send, partial(sock.recv_into, self._buffer)
        else:
            self._write = partial(os.write, sock.fileno())
            self._read = _polling_reader(sock, self._buffer)
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

    def check_clean(self) -> Link:
        """Close the connection if it has outstanding replies that no caller waits for."""
        if self.owed:
            self.disconnect()
        return self

    def send(self, request: bytes, count: int, wait_s: float | None = None) -> None:
        """Send a packed request that has `count` replies; connect first if needed."""
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
        """Append the next replies, waiting at most `wait_s` seconds for bytes; replies that arrived before
        the connection is lost are appended too. An error reply is appended as redis-py's exception; it is
        raised only if the server refuses all service."""
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
                raise LostConnection("only a part of a small request was written")
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


def _preemptions() -> int:
    """Return how often the kernel gave this process's CPU to another one that was ready to run."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _polling_reader(
    sock: socket.socket, buffer: bytearray, preemptions: Callable[[], int] = _preemptions
) -> Callable[[], int]:
    """Return a function that reads into `buffer`, polling for a while before it waits."""
    poll, now = partial(os.readv, sock.fileno(), [buffer]), time.perf_counter_ns
    longest = LOCAL_POLL_NS if _is_local(sock) else REMOTE_POLL_NS
    left, unpolled = 0, MIN_UNPOLLED
    until_check, preempted, checked_at = CHECK_EVERY, preemptions(), now()

    def read() -> int:
        nonlocal left, unpolled, until_check, preempted, checked_at
        if left:
            left -= 1
            return sock.recv_into(buffer)
        end = now() + longest
        while True:
            try:
                received = poll()
            except BlockingIOError:
                if now() < end:
                    continue
                break
            unpolled = MIN_UNPOLLED
            until_check -= 1
            if not until_check:
                last, last_at = preempted, checked_at
                until_check, preempted, checked_at = CHECK_EVERY, preemptions(), now()
                if _is_contended(preempted - last, (checked_at - last_at) / 1e9):
                    left = CONTENDED_UNPOLLED
            return received
        left, unpolled = unpolled, min(2 * unpolled, MAX_UNPOLLED)
        return sock.recv_into(buffer)

    return read


def _is_contended(preemptions: int, seconds: float) -> bool:
    """Return whether others wait for the CPU. A process alone is preempted about once a second.

    >>> _is_contended(2, 0.02), _is_contended(6, 0.1), _is_contended(100, 3600)
    (False, True, False)
    """
    return preemptions >= 3 and preemptions >= 20 * seconds


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
