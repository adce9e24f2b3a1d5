"""One connection on an event loop; `_sync.link` is the blocking counterpart.

redis-py connects and authenticates; then our protocol takes over the transport. It parses replies as bytes
arrive, so that one future is awaited for all replies to a request. There is no task, lock or asyncio time-out
in between, so a cancellation always reaches the caller and is never mistaken for a time-out. A time-out
closes the connection, which wakes the waiting caller.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast
from weakref import WeakMethod

from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as LostReply

from fdstore.wire._async.support import connect_within
from fdstore.wire.connection_options import discard_unsent, take_whole_requests
from fdstore.wire.packing import INCOMPLETE, make_reader
from fdstore.wire.redis_errors import WAITED_FOR, Codes, refusal_in


class Link:
    """A connection that is opened on first use, and again after it was lost. Raises redis-py's errors.

    make        returns a connection of redis-py
    patience_s  how long one attempt to connect may take in all; None: each of its waits has the time-out of
                `connection_options`
    """

    def __init__(self, make: Callable[[], Any], patience_s: float | None = None) -> None:
        self._patience_s = patience_s
        self.connection = make()
        self.owed = 0
        """The number of outstanding replies."""
        self.refused = False
        """True if the last request got a reply that is or contains an error."""
        self.waits_for: Codes = WAITED_FOR
        """The refusals that its user waits for: `receive` raises them."""
        self._stream: _Stream | None = None
        to_connect, to_reply = self.connection.socket_connect_timeout, self.connection.socket_timeout
        if patience_s is not None:
            to_connect, to_reply = min(to_connect, patience_s), min(to_reply, patience_s)
        self._timeouts_s = (to_connect, to_reply)

    @property
    def is_connected(self) -> bool:
        return self._stream is not None and self._stream.error is None

    async def connect(self, limit_s: float | None = None) -> _Stream:
        """Connect, with one attempt; each wait for the socket is at most `limit_s` seconds, with patience
        all of them together."""
        self.disconnect()  # an interrupted attempt may have left a connection before SELECT
        connection = self.connection
        to_connect, to_reply = self._timeouts_s
        connection.socket_connect_timeout = min(to_connect, limit_s or to_connect)
        connection.socket_timeout = min(to_reply, limit_s or to_reply)
        if self._patience_s is None:
            await connection.connect()
        else:
            await connect_within(connection, min(self._patience_s, limit_s or self._patience_s))
        take_whole_requests(connection._writer.get_extra_info("socket"))
        # the event loop holds the stream: a link that is dropped without `close` must not be held by it, too
        refusals = WeakMethod(self._take_refusal)

        def take_refusal(message: str) -> Exception:
            take = refusals()
            return RedisError(message) if take is None else take(message)

        self._stream = _Stream(connection._writer.transport, make_reader(take_refusal))
        return self._stream

    def _take_refusal(self, message: str) -> Exception:
        self.refused = True
        error: Exception = self.connection._parser.parse_error(message)
        return error

    def disconnect(self) -> None:
        """Close the connection, without waiting for anything, and discard what was not sent of requests
        without a reply."""
        stream, self._stream = self._stream, None
        if stream is not None:
            if self.owed:
                stream.discard_unsent()
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
        """Close the connection; the server may still execute the requests sent."""
        self.disconnect()

    async def send(self, request: bytes, count: int, wait_s: float | None = None) -> None:
        """Send a packed request that has `count` replies; connect first if needed."""
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
        """Append the next replies, waiting at most `wait_s` seconds for bytes; replies that arrived before
        the connection is lost are appended too. An error reply is appended as redis-py's exception; it is
        raised only if it is waited for (`waits_for`), or the server refuses all service."""
        stream = self._stream
        if stream is None:
            raise LostConnection("it was closed")
        arrived = stream.arrived
        if len(arrived) < count:
            await stream.wait(count, wait_s or self._timeouts_s[1])
        for _ in range(min(count, len(arrived))):
            reply = arrived.popleft()
            if self.refused and (error := refusal_in(reply, self.waits_for)):
                raise error
            replies.append(reply)
            count -= 1
            self.owed -= 1
        if count:
            raise stream.error or LostConnection("it was closed")


class _Stream(asyncio.Protocol):
    """The protocol of one open connection. `error` is why it was lost."""

    def __init__(self, transport: Any, reader: Any) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.arrived: deque[Any] = deque()
        self.full = False
        """True while the write buffer is above its limit."""
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.error: RedisError | None = None
        self._reader = reader
        self._waiter: asyncio.Future[None] | None = None
        self._needed = 0
        self._wait_s = self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        if transport.is_closing():
            self.error = LostConnection("it closed the connection")
            self.closed.set_result(None)
        transport.set_protocol(self)

    async def wait(self, count: int, wait_s: float) -> None:
        """Wait until `count` replies have arrived and the write buffer has room, or the connection is lost;
        it is closed if no bytes arrive for `wait_s` seconds."""
        if self.error is not None:
            return
        self._needed, self._wait_s = count, wait_s
        self._until = self._loop.time() + wait_s
        if self._timer is None or self._timer.when() > self._until:
            self._set_timer()
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def discard_unsent(self) -> None:
        """Have the kernel discard what was not sent yet when the connection is closed."""
        discard_unsent(self.transport.get_extra_info("socket"))

    def lose(self, error: RedisError) -> None:
        """Close the connection, and record the error unless there is one."""
        self.error = self.error or error
        self.transport.abort()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # one timer for all requests: when it fires, it is set to the deadline of the request that waits now

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
            self.discard_unsent()
            self.lose(LostReply("no reply in time"))

    # called by the transport

    def data_received(self, data: bytes) -> None:
        arrived, read = self.arrived, self._reader.gets
        try:
            self._reader.feed(data)
            while (reply := read()) is not INCOMPLETE:
                arrived.append(reply)
        except RedisError as error:
            self.lose(error)
        if self._waiter is not None:
            if len(arrived) >= self._needed and not self.full:
                self._wake()
            else:
                self._until = self._loop.time() + self._wait_s

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        if len(self.arrived) >= self._needed:
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
