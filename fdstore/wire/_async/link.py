"""One connection of an event loop, as `_sync.link` is one of a socket.

redis-py connects and logs in; then a protocol of ours takes over the transport. It parses replies as bytes
come, so that one future is awaited for all replies to a request. No task, lock or time-out of the event loop
stands in between: a cancel that comes while a reply is awaited reaches the caller, whatever the moment, and
is never mistaken for a time-out. When a time-out is over, the connection is closed, which wakes who awaits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, cast

from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as LostReply

from fdstore.wire.retry import INCOMPLETE, make_reader, refuses_service


class Link:
    """A connection, made when it is first needed, and again after it was lost. Raises redis-py's errors."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.owed = 0
        """How many replies are on their way."""
        self.refused = False
        """Whether a reply was an error, or has one in it, since a request was sent last."""
        self._stream: _Stream | None = None
        self._timeouts_s = (connection.socket_connect_timeout, connection.socket_timeout)

    @property
    def is_connected(self) -> bool:
        return self._stream is not None and self._stream.error is None

    async def connect(self, limit_s: float | None = None) -> _Stream:
        """Connect, trying once, for at most `limit_s` seconds each time that the socket is waited for."""
        self.disconnect()  # what an interrupted attempt left: it may not have chosen the database yet
        connection = self.connection
        to_connect, to_reply = self._timeouts_s
        connection.socket_connect_timeout = min(to_connect, limit_s or to_connect)
        connection.socket_timeout = min(to_reply, limit_s or to_reply)
        await connection.connect()
        self._stream = _Stream(connection._writer.transport, make_reader(self._take_refusal))
        return self._stream

    def _take_refusal(self, message: str) -> Exception:
        self.refused = True
        error: Exception = self.connection._parser.parse_error(message)
        return error

    def disconnect(self) -> None:
        """Close the connection, without waiting for anything."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.lose(LostConnection("it was closed"))
        self.connection._close()
        self.owed = 0

    async def close(self) -> None:
        """Close the connection, and wait until the socket is closed."""
        stream = self._stream
        self.disconnect()
        if stream is not None:
            await stream.closed

    async def finish(self) -> None:
        """Close the connection; what was sent may still be done."""
        self.disconnect()

    def check_clean(self) -> Link:
        """Close the connection if there are replies on their way that nobody waits for."""
        if self.owed:
            self.disconnect()
        return self

    async def send(self, request: bytes, count: int, wait_s: float | None = None) -> None:
        """Send a packed request that has `count` replies, connected or not before."""
        stream = self._stream
        if stream is None or stream.error is not None:
            stream = await self.connect(wait_s)
        self.refused = False
        self.owed += count
        stream.transport.write(request)
        if stream.full:
            await stream.wait(0, wait_s or self._timeouts_s[1])
            if stream.error is not None:
                raise stream.error

    async def receive(self, replies: list[Any], count: int, wait_s: float | None = None) -> None:
        """Add the next replies, waiting at most `wait_s` seconds for bytes to come; those that came before
        the connection is lost, too. An error among them is redis-py's exception for it, not raised, unless
        it says that the server serves nobody now."""
        stream = self._stream
        if stream is None:
            raise LostConnection("it was closed")
        arrived = stream.arrived
        if len(arrived) < count:
            await stream.wait(count, wait_s or self._timeouts_s[1])
        for _ in range(min(count, len(arrived))):
            reply = arrived.popleft()
            if self.refused and (error := refuses_service(reply)):
                raise error
            replies.append(reply)
            count -= 1
            self.owed -= 1
        if count:
            raise stream.error or LostConnection("it was closed")

    async def ask(self, request: bytes, replies: list[Any], count: int) -> None:
        """Send a packed request and receive its replies: `send` and `receive` in one call."""
        await self.send(request, count)
        await self.receive(replies, count)


class _Stream(asyncio.Protocol):
    """One connection from the time it is made until it is lost. `error` says what it was lost of."""

    def __init__(self, transport: Any, reader: Any) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.arrived: deque[Any] = deque()
        self.full = False
        """Whether what was written last waits for room."""
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.error: RedisError | None = None
        self._reader = reader
        self._waiter: asyncio.Future[None] | None = None
        self._wanted = 0
        self._wait_s = self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        if transport.is_closing():
            self.error = LostConnection("it closed the connection")
            self.closed.set_result(None)
        transport.set_protocol(self)

    async def wait(self, count: int, wait_s: float) -> None:
        """Wait until `count` replies arrived and there is room to write, or the connection is lost, as it is
        when no bytes come for `wait_s` seconds."""
        if self.error is not None:
            return
        self._wanted, self._wait_s = count, wait_s
        self._until = self._loop.time() + wait_s
        if self._timer is None or self._timer.when() > self._until:
            self._set_timer()
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def lose(self, error: RedisError) -> None:
        """Close the connection, for this reason if there was none before."""
        self.error = self.error or error
        self.transport.abort()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # one timer for all requests: when it rings, it is set to when the one that waits now has waited enough

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._until, self._check_time)

    def _check_time(self) -> None:
        self._timer = None
        if self._waiter is None or self.error is not None:
            return
        if self._loop.time() < self._until:
            self._set_timer()
        else:
            self.lose(LostReply("no reply in time"))

    # what the transport calls

    def data_received(self, data: bytes) -> None:
        arrived, read = self.arrived, self._reader.gets
        try:
            self._reader.feed(data)
            while (reply := read()) is not INCOMPLETE:
                arrived.append(reply)
        except RedisError as error:
            self.lose(error)
        if self._waiter is not None:
            if len(arrived) >= self._wanted and not self.full:
                self._wake()
            else:
                self._until = self._loop.time() + self._wait_s

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        if len(self.arrived) >= self._wanted:
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.error = self.error or LostConnection(
            f"the connection failed: {exc}" if exc else "it closed the connection"
        )
        if self._timer is not None:
            self._timer.cancel()
        if not self.closed.done():
            self.closed.set_result(None)
        self._wake()
