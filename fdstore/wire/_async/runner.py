"""Run operations on Redis: connections, time-outs, retries and error translation.

A runner holds a stack of redis-py *connections* and bypasses redis-py's client: one round trip is "send the
packed commands, read as many replies". redis-py's defaults (ten blind retries, a 5 s read time-out) could
execute a command twice after one lost reply.

Every request is idempotent (see `operation`), so after a lost connection, or a refusal that passes (see
`redis_errors`), the runner reconnects and resends the unanswered requests (see `retry.RetryState`), until its
patience or `retry.DEADLINE_S` is over. Only then is the outcome of a write unknown.

The runner for a Redis Cluster is in `cluster`; `cluster.make_runner` chooses the runner by the URL.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, TypeVar
from weakref import WeakSet

from redis.exceptions import RedisError

from fdstore.errors import TAKES_NO_WRITES
from fdstore.wire._async.event_loop import OwnLoop  # awaiting only
from fdstore.wire._async.link import Link
from fdstore.wire._async.support import THROWN, make_pool, run_call, sleep
from fdstore.wire.breaker import Breaker
from fdstore.wire.connection_options import SOCKET_TIMEOUT_S
from fdstore.wire.operation import (
    Abandon,
    Alongside,
    Batch,
    Block,
    Disk,
    Everywhere,
    NumberedFields,
    Operation,
    Receive,
    Request,
    Send,
    Upkeep,
    Working,
)
from fdstore.wire.packing import pack
from fdstore.wire.redis_errors import (
    OF_WRITES,
    WAITED_FOR,
    WORK_WAITS_FOR,
    Codes,
    raise_error,
    refusal_code,
    translate,
    without_errors,
)
from fdstore.wire.retry import (
    MIN_WAIT_S,
    InFlight,
    RetryState,
    is_transient,
    unloaded_scripts,
)
from fdstore.wire.scripts import LoadedScripts
from fdstore.wire.store_url import StoreUrl, parse_store_url

T = TypeVar("T")

_runners: WeakSet[Runner] = WeakSet()


def _leave_to_parent() -> None:
    for runner in _runners:
        runner.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)


class Runner:
    """Runs operations on one Redis. A blocking runner may be shared by threads, and reconnects after a fork;
    an asynchronous one belongs to one event loop. With `patience_s`, a request that gets no answer fails
    after so many seconds, and the following ones at once (see `breaker`)."""

    def __init__(self, url: str | StoreUrl, patience_s: float | None = None) -> None:
        self.place = parse_store_url(url) if isinstance(url, str) else url
        self.where = self.place.shown
        self.patience_s = patience_s
        self._breaker = None if patience_s is None else Breaker(self.where)
        self._adapt = None if self._breaker is None else self._breaker.guarded
        """The function that an operation is passed through before it runs."""
        self._pool = make_pool(self.place, patience_s)
        self.scripts = LoadedScripts()
        self._free: list[Link] = []
        self._loop = OwnLoop(self.where)  # awaiting only
        _runners.add(self)

    async def run(self, operation: Operation[T]) -> T:
        """Serve the requests of an operation until it ends. Return its result."""
        self._loop.check()  # awaiting only
        waits_for = WORK_WAITS_FOR if type(operation) is Working else WAITED_FOR
        if self._adapt is not None:
            operation = self._adapt(operation)
        flights: dict[str, InFlight] = {}
        try:
            request: Request = next(operation)
            while True:
                try:
                    if isinstance(request, list):
                        reply: Any = await self._round_trip(request, waits_for)
                    else:
                        reply = await self._serve(request, flights, waits_for)
                except THROWN as error:
                    request = operation.throw(error)
                else:
                    request = operation.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            operation.close()
            for flight in flights.values():
                self._give(flight.link)

    async def read_field(self, fields: NumberedFields, number: int) -> list[Any]:
        """Return the result of `fields.read(number)`, without the overhead of an operation."""
        if self._breaker is not None:
            return await self.run(fields.read(number))
        self._loop.check()  # awaiting only
        link = self._take()
        link.waits_for = WAITED_FOR
        replies: list[Any] = []
        started = time.monotonic()
        try:
            try:
                await link.send(fields.request(number), 2)
                await link.receive(replies, 2)
                if not link.refused:
                    return replies
            except RedisError as error:
                await self._retry(link, self._tries(link, fields.batch(number), replies, started), error)
        finally:
            self._free.append(link)
        return await self._resolve_errors(fields.batch(number), replies)

    async def reach(self) -> None:
        """Connect, with one attempt; with patience, the server must answer too. Raises `StoreUnavailable`."""
        self._loop.check()  # awaiting only
        if self._breaker is None:
            await self._reach()
        else:
            with self._breaker.attempt():
                await self._reach()

    async def _reach(self) -> None:
        link = self._take()
        started = time.monotonic()
        try:
            await link.connect()
            if self.patience_s is not None:
                await link.send(pack([("PING",)]), 1)
                await link.receive([], 1, self._wait_s(started))
        except (RedisError, UnicodeError) as error:
            link.disconnect()
            if not refusal_code(error):
                raise translate(error, self.where) from error
            await self._round_trip([("PING",)])  # it is there: wait until it serves
        self._free.append(link)

    async def close(self) -> None:
        """Close all connections. The runner can be used again, also in another event loop."""
        self._loop.leave()  # awaiting only
        free, self._free = self._free, []
        for link in free:
            await link.close()
        await self._pool.aclose()

    def leave_to_parent(self) -> None:
        """Drop all connections after a fork: they belong to the parent."""
        self._free = []
        self._loop.forget()  # awaiting only
        if self._breaker is not None:
            self._breaker.forget()

    def _take(self) -> Link:
        try:
            link = self._free.pop()
        except IndexError:
            return self._make_link()
        if link.owed:
            link.disconnect()
        return link

    def _give(self, link: Link) -> None:
        """Make a link free; if its user was interrupted, close it: the next one would receive the replies."""
        if link.owed:
            link.disconnect()
        self._free.append(link)

    def _make_link(self, **options: Any) -> Link:
        make = partial(self._pool.connection_class, **{**self._pool.connection_kwargs, **options})
        return Link(make, self.patience_s)

    async def _serve(self, request: Request, flights: dict[str, InFlight], waits_for: Codes) -> Any:
        match request:
            case Send(batch, lane):
                flight = flights.get(lane)
                if flight is None:
                    flight = flights[lane] = InFlight(self._take())
                    flight.link.waits_for = waits_for
                broken = flight.broken
                flight.batches.append(batch)
                if not broken:  # on a new connection this batch would overtake the earlier ones
                    await self._send_flight(flight, [batch])
                return None
            case Receive(lane):
                return await self._receive_flight(flights[lane])
            case Abandon(lane):
                if abandoned := flights.pop(lane, None):
                    await abandoned.link.finish()
                    self._free.append(abandoned.link)
                return None
            case Block(command, seconds):
                return (await self._round_trip([command], waits_for, seconds))[0]
            case Alongside(reads, batch):
                replies = await self._round_trip([*reads, *batch], waits_for)
                return replies[: len(reads)], replies[len(reads) :]
            case Upkeep(batch):
                with suppress(*TAKES_NO_WRITES):
                    return await self._round_trip(batch, waits_for - OF_WRITES)
                return None
            case Everywhere(batch, optional):
                replies = await self._round_trip([*batch, *optional], waits_for, required=len(batch))
                return [(self.where, replies)]
            case Disk():
                return await run_call(request)
        raise TypeError(f"not a request: {request!r}")

    async def _round_trip(
        self,
        batch: Batch,
        waits_for: Codes = WAITED_FOR,
        block_s: float = 0.0,
        *,
        required: int | None = None,
    ) -> list[Any]:
        link = self._take()
        link.waits_for = waits_for
        replies: list[Any] = []
        started = time.monotonic()
        try:
            try:
                await link.send(pack(self.scripts.with_sources(batch)), len(batch))
                await link.receive(replies, len(batch), self._wait_s(started, block_s))
                clean = not link.refused
            except RedisError as error:
                await self._retry(link, self._tries(link, batch, replies, started, block_s), error)
                clean = False
        finally:
            self._give(link)
        return replies if clean else await self._resolve_errors(batch, replies, waits_for, required)

    def _wait_s(self, started: float, block_s: float = 0.0) -> float | None:
        """Return how long a first attempt waits for replies, which the server may delay for `block_s`;
        None: as long as its link waits by itself."""
        if self.patience_s is not None:
            left_s = self.patience_s - (time.monotonic() - started)
            return block_s + max(min(left_s, SOCKET_TIMEOUT_S), MIN_WAIT_S)
        return block_s + SOCKET_TIMEOUT_S if block_s else None

    async def _send_flight(self, flight: InFlight, batches: Iterable[Batch]) -> None:
        started = time.monotonic()
        try:
            for batch in batches:
                limit_s = self._wait_s(started - flight.waited_s)
                await flight.link.send(pack(self.scripts.with_sources(batch)), len(batch), limit_s)
        except RedisError as error:
            if not is_transient(error):
                raise
            # everything in flight is resent when its replies are requested
            flight.link.disconnect()
            flight.waited_s += time.monotonic() - started

    async def _receive_flight(self, flight: InFlight) -> list[Any]:
        link, batch = flight.link, flight.batches[0]
        replies: list[Any] = []
        started = time.monotonic() - flight.waited_s
        try:
            if not link.is_connected:
                await self._send_flight(flight, flight.batches)
            await link.receive(replies, len(batch), self._wait_s(started))
            clean = not link.refused
        except RedisError as error:
            await self._retry(link, self._tries(link, batch, replies, started, sent=True), error)
            clean, flight.waited_s = False, 0.0
            await self._send_flight(flight, islice(flight.batches, 1, None))
        # all its replies have been read, errors among them or not
        flight.batches.popleft()
        return replies if clean else await self._resolve_errors(batch, replies, link.waits_for)

    def _tries(
        self,
        link: Link,
        batch: Batch,
        replies: list[Any],
        started: float,
        block_s: float = 0.0,
        *,
        sent: bool = False,
    ) -> RetryState:
        return RetryState(
            self.where,
            batch,
            replies,
            sent=sent or link.owed > 0,
            started=started,
            block_s=block_s,
            deadline_s=self.patience_s,
        )

    async def _retry(self, link: Link, tries: RetryState, error: RedisError) -> None:
        """Resend on new connections until every command has a reply, possibly an error."""
        while True:
            link.disconnect()
            await sleep(tries.after(error))
            try:
                while piece := tries.piece():
                    replies: list[Any] = []
                    try:
                        await link.send(pack(piece), len(piece), tries.patience_s())
                        await link.receive(replies, len(piece), tries.patience_s())
                    finally:
                        tries.sent = tries.sent or link.owed > 0
                        tries.add_replies(piece, replies)
                return
            except RedisError as problem:
                error = problem

    async def _resolve_errors(
        self,
        batch: Batch,
        replies: list[Any],
        waits_for: Codes = WAITED_FOR,
        required: int | None = None,
    ) -> list[Any]:
        """Run scripts that the server did not know again, with their sources. Return the replies. Raises the
        first other error among them, or among the `required` ones: the others are then None."""
        if required is not None:
            replies[required:] = without_errors(replies[required:])
        for unit in unloaded_scripts(batch, replies):
            self.scripts.forget()
            replies[unit] = await self._round_trip(batch[unit], waits_for)
        raise_error(batch, replies, self.where)
        return replies
