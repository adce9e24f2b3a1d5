"""Runs operations on Redis, awaiting: the twin of `connection.Runner`, step for step.

Sockets that wait and sockets that await are different things, so this is the one part of the store that
is written twice; what it decides by (`wire`) and what it runs (the operations) are not. It differs where
asyncio does: it may be cancelled at every await, and redis-py's own asyncio connection reads the replies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar

from redis.exceptions import BusyLoadingError, RedisError, ResponseError

from fdstore.errors import FDStoreError
from fdstore.store.operation import Batch, Block, Disk, Everywhere, Operation, Receive, Request, Send
from fdstore.store.places import Place, find_place, make_async_pool
from fdstore.store.scripts import in_full
from fdstore.store.wire import (
    PASSING,
    SOCKET_TIMEOUT_S,
    Flight,
    Tries,
    packed,
    raise_refusal,
    refusal_in,
    translate,
    unknown_scripts,
)

T = TypeVar("T")


class AsyncRunner:
    """Runs operations, awaiting. Made and used in one event loop."""

    def __init__(self, url: str | Place) -> None:
        self.place = find_place(url) if isinstance(url, str) else url
        self.where = self.place.shown
        self._pool = make_async_pool(self.place)
        self._free: list[Any] = []

    async def run(self, operation: Operation[T]) -> T:
        """Serves the operation's requests until it is done; its result."""
        flights: dict[str, Flight] = {}
        task = asyncio.current_task()
        cancels = task.cancelling() if task else 0
        try:
            request: Request = next(operation)
            while True:
                if task and task.cancelling() > cancels:
                    # a cancel that comes as a wait of redis-py ends is swallowed there
                    raise asyncio.CancelledError
                try:
                    if type(request) is list:
                        reply: Any = await self._round_trip(request)
                    else:
                        reply = await self._serve(request, flights)
                except FDStoreError as error:
                    request = operation.throw(error)
                else:
                    request = operation.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            operation.close()
            for flight in flights.values():
                await self._land(flight)

    async def reach(self) -> None:
        """Connects, trying once. Raises `StoreUnavailable`."""
        connection = self._take()
        try:
            await connection.connect()
        except (RedisError, UnicodeError) as error:
            raise translate(error, self.where) from error
        self._free.append(connection)

    async def close(self) -> None:
        """Closes all connections. The runner can be used again."""
        free, self._free = self._free, []
        for connection in free:
            await connection.disconnect()
        await self._pool.aclose()

    def _take(self) -> Any:
        if self._free:
            return self._free.pop()
        return self._pool.connection_class(**self._pool.connection_kwargs)

    async def _land(self, flight: Flight) -> None:
        if flight.batches:
            await flight.connection.disconnect(nowait=True)
        self._free.append(flight.connection)

    async def _serve(self, request: Request, flights: dict[str, Flight]) -> Any:
        match request:
            case Send(batch, lane):
                flight = flights.get(lane)
                if flight is None:
                    flight = flights[lane] = Flight(self._take())
                broken = flight.broken
                flight.batches.append(batch)
                if not broken:  # on a new connection this batch would go ahead of those before it
                    await self._depart(flight, [batch])
                return None
            case Receive(lane):
                return await self._arrive(flights[lane])
            case Block(command, seconds):
                return (await self._round_trip([command], seconds))[0]
            case Everywhere(batch):
                return [(self.where, await self._round_trip(batch))]
            case Disk(call):
                return await asyncio.to_thread(call)
        raise TypeError(f"not a request: {request!r}")

    async def _round_trip(self, batch: Batch, block_s: float = 0.0) -> list[Any]:
        connection = self._take()
        replies: list[Any] = []
        sent = False
        try:
            try:
                await connection.send_packed_command(packed(batch), check_health=False)
                sent = True
                clean = await self._read(connection, batch, replies, block_s)
            except RedisError as error:
                tries = Tries(self.where, batch, replies, sent=sent)
                await self._read_again(connection, tries, error, block_s)
                clean = False
            return replies if clean else await self._see_to_refusals(batch, replies)
        except FDStoreError:
            raise  # all replies were read, or the connection is closed
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        finally:
            self._free.append(connection)

    async def _depart(self, flight: Flight, batches: Iterable[Batch]) -> None:
        try:
            for batch in batches:
                await flight.connection.send_packed_command(packed(batch), check_health=False)
        except PASSING:
            # the replies will be missed, and everything on its way sent again, when they are asked for
            await flight.connection.disconnect(nowait=True)

    async def _arrive(self, flight: Flight) -> list[Any]:
        connection, batch = flight.connection, flight.batches[0]
        replies: list[Any] = []
        try:
            if not connection.is_connected:
                await self._depart(flight, flight.batches)
            clean = await self._read(connection, batch, replies)
        except RedisError as error:
            tries = Tries(self.where, batch, replies, sent=True)
            await self._read_again(connection, tries, error)
            clean = False
            await self._depart(flight, islice(flight.batches, 1, None))
        # all its replies were read, if some of them are errors
        flight.batches.popleft()
        return replies if clean else await self._see_to_refusals(batch, replies)

    async def _read(self, connection: Any, batch: Batch, replies: list[Any], block_s: float = 0.0) -> bool:
        """Adds the replies to the batch, and errors among them; whether there were none."""
        patience = {"timeout": block_s + SOCKET_TIMEOUT_S} if block_s else {}
        for _ in batch:
            try:
                replies.append(await connection.read_response(**patience))
            except BusyLoadingError:
                raise
            except ResponseError as error:
                # the other replies are read too, so that the connection is clean for what comes next
                replies.append(error)
        return not any(map(refusal_in, batch, replies))

    async def _read_again(
        self, connection: Any, tries: Tries, error: RedisError, block_s: float = 0.0
    ) -> None:
        """Asks again on new connections until all is answered, for better or worse."""
        while True:
            await connection.disconnect(nowait=True)
            await asyncio.sleep(tries.after(error))
            try:
                while piece := tries.piece():
                    replies: list[Any] = []
                    try:
                        await connection.send_packed_command(packed(piece), check_health=False)
                        tries.sent = True
                        await self._read(connection, piece, replies, block_s)
                    finally:
                        tries.took(piece, replies)
                return
            except RedisError as problem:
                error = problem

    async def _see_to_refusals(self, batch: Batch, replies: list[Any]) -> list[Any]:
        """The replies, with those of scripts that the server did not know. Raises what was refused."""
        for unit in unknown_scripts(batch, replies):
            replies[unit] = await self._round_trip([in_full(command) for command in batch[unit]])
        raise_refusal(batch, replies, self.where)
        return replies
