"""Route operations on a Redis Cluster: find the node for each request, follow redirects, and retry.

`Router.routed` adapts an operation for one Redis to a Cluster. It is a generator around a generator: the
inner one yields requests as if there were one server, the outer one yields attempts at single nodes. So the
Cluster logic exists once, for both runners, and without I/O.

    connection lost      reload the slot map from the other nodes, reconnect
    MOVED                the slot belongs to another node: send there from now on
    ASK                  the slot is migrating and the key is not here: send to the other node this once
    TRYAGAIN             the slot is migrating and the command names several keys (see `slots`): retry later
    CLUSTERDOWN          no node serves the slot, as during a failover: retry later
    NOSCRIPT             the node does not know the script: send its source
    BUSY, READONLY ...   the node does not do it now (see `redis_errors`): retry later, as a lost connection

Retries end after the patience of the client or `retry.DEADLINE_S`, as with one Redis; with patience, nodes
that are asked in turn share it. Units that only read are sent in one request per node; if any unit writes,
the order is kept, and all units from the first refused one on are sent again, which is safe for every request
(see `operation`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

import msgspec
from redis.exceptions import AskError, ClusterDownError, MovedError, NoScriptError, RedisError
from redis.exceptions import TimeoutError as LostReply

from fdstore.errors import TAKES_NO_WRITES, FDStoreError, InvalidArgument
from fdstore.setup.url_options import Address, format_address
from fdstore.wire.operation import (
    Abandon,
    Alongside,
    Apart,
    Batch,
    Block,
    Everywhere,
    Operation,
    Receive,
    Request,
    Send,
    Upkeep,
    served,
)
from fdstore.wire.redis_errors import (
    OF_WRITES,
    Codes,
    error_in,
    raise_error,
    refusal_code,
    translate,
    without_errors,
)
from fdstore.wire.retry import MIN_WAIT_S, NOT_ON_THIS_NODE, RetryState
from fdstore.wire.scripts import as_eval, is_read
from fdstore.wire.slots import Slots, Unit, group_by_node, slot_of, units_of

T = TypeVar("T")

REDIRECTS = (AskError, NoScriptError)
"""Refusals that are retried without a pause."""

ROUTED = frozenset({"CLUSTERDOWN", "TRYAGAIN"})
"""Refusals that concern single units of a batch: they are read as replies here."""

TRY_ONCE_S = 1.0
"""The longest time of reads that a batch does not depend on, see `Alongside`."""

MAX_HOPS = 5
"""The most redirects followed in a row: while a slot migrates, two nodes may redirect to each other."""


class AtNode(msgspec.Struct, frozen=True):
    """Send a batch to one node, and wait at most `wait_s` seconds (None: the default time-out) for bytes.
    Refusals with the codes `without` are not waited for. Result: its replies, errors among them, or
    `AttemptFailed`."""

    address: Address
    batch: Batch
    wait_s: float | None = None
    without: Codes = frozenset()


class SendAt(msgspec.Struct, frozen=True):
    """Send to one node over the lane's connection, without waiting. Result: None or `AttemptFailed`."""

    address: Address
    batch: Batch
    lane: str


class ReceiveAt(msgspec.Struct, frozen=True):
    """Wait for the replies to the lane's oldest batch. Result: as for `AtNode`."""

    lane: str


class Drop(msgspec.Struct, frozen=True):
    """Close the lane's connection, with its batches in flight."""

    lane: str


class Pause(msgspec.Struct, frozen=True):
    """Sleep."""

    seconds: float


class AttemptFailed(msgspec.Struct, frozen=True):
    """An attempt that did not get all its replies. `sent`: the node may have received the batch."""

    error: RedisError
    sent: bool
    replies: list[Any] = []


Routed: TypeAlias = Generator[Any, Any, T]
"""An operation for the nodes of a Cluster: yields the requests above, and those that need no Redis."""


class Lane:
    """Batches in flight to one node, oldest first. After its connection breaks they are resent one by one."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.batches: deque[Batch] = deque()
        self.broken = False


class Router:
    """Routes the operations of one client on its Cluster."""

    def __init__(self, where: str, seeds: tuple[Address, ...], patience_s: float | None = None) -> None:
        self._where = where
        self._patience_s = patience_s
        self.slots = Slots(seeds)

    def routed(self, operation: Operation[T]) -> Routed[T]:
        """Adapt an operation to the nodes of a Cluster."""
        lanes: dict[str, Lane] = {}
        return served(operation, lambda request: self._serve(request, lanes))

    def nodes_of(self, request: Any) -> tuple[Address, ...]:
        """Return the nodes that a request needs, as far as is known; () if any will do."""
        match request:
            case Apart():
                return ()
            case list():
                batch: Batch = request
            case Block(command):
                batch = [command]
            case Alongside(_, batch) | Upkeep(batch):
                pass
            case _:
                return self.slots.primaries
        if not self.slots.primaries:
            return ()
        slots = {slot for slot in map(slot_of, batch) if slot is not None}
        return tuple(sorted({self.slots.node_of(slot) for slot in slots}))

    def load(self) -> Routed[None]:
        """Load the slot map from any node. Raises `StoreUnavailable`, `InvalidArgument`."""
        started = time.monotonic()
        tries = RetryState(self._where, [], [], sent=False, started=started, deadline_s=self._patience_s)
        while error := (yield from self._refresh(None, started)):
            if "cluster support disabled" in str(error):
                raise InvalidArgument("url", f"{self._where} is not a Redis Cluster; use redis://") from error
            if type(error) is ClusterDownError or not refusal_code(error):
                raise translate(error, self._where) from error
            yield Pause(tries.after(error))

    def _serve(self, request: Request, lanes: dict[str, Lane]) -> Routed[Any]:
        started = time.monotonic()
        if not self.slots.primaries:
            yield from self.load()
        match request:
            case Apart():
                return (yield from self._ask_apart(request, started))
            case list():
                return (yield from self._ask(request, started))
            case Block(command, seconds):
                return (yield from self._ask([command], started, seconds))[0]
            case Send(batch, lane):
                return (yield from self._send(batch, lane, lanes))
            case Receive(lane):
                return (yield from self._receive(lane, lanes))
            case Alongside(reads, batch):
                replies = yield from self._try_once(reads)
                return replies, (yield from self._ask(batch, started))
            case Upkeep(batch):
                with suppress(*TAKES_NO_WRITES):
                    return (yield from self._ask(batch, started, without=OF_WRITES))
                return None
            case Everywhere(batch, optional):
                return (yield from self._ask_all(batch, optional, started))
            case Abandon(lane):
                lanes.pop(lane, None)
        return (yield request)

    def _ask(
        self,
        batch: Batch,
        started: float,
        block_s: float = 0.0,
        *,
        sent: bool = False,
        without: Codes = frozenset(),
    ) -> Routed[list[Any]]:
        replies: list[Any] = [None] * len(batch)
        in_order = not all(map(is_read, batch))
        waiting = units_of(batch)
        tries = RetryState(
            *(self._where, batch, []),
            sent=sent,
            started=started,
            block_s=block_s,
            deadline_s=self._patience_s,
        )
        wait_s = tries.patience_s() if block_s else None
        hops = 0
        while True:
            refused: list[Unit] = []
            failure: AttemptFailed | None = None
            for address, run in group_by_node(waiting, self.slots, in_order=in_order):
                commands = [command for unit in run for command in unit.request]
                patience_s = wait_s if self._patience_s is None else tries.patience_s()
                result = yield AtNode(address, commands, patience_s, without)
                if isinstance(result, AttemptFailed):
                    failure, lost, sent = result, address, sent or result.sent
                    failed = self._place(result.replies, address, run, replies, result.error)
                else:
                    failed = self._place(result, address, run, replies)
                refused += failed
                if failed and in_order:
                    break
            if not refused:
                raise_error(batch, replies, self._where)
                return replies
            waiting = waiting[waiting.index(refused[0]) :] if in_order else refused
            error = refused[0].refusal
            assert error is not None
            if isinstance(error, REDIRECTS) and hops < MAX_HOPS:
                hops += 1
                continue
            if block_s and refusal_code(error) == "UNBLOCKED":
                return [None]
            hops = 0
            tries.sent = sent
            pause = tries.after(error)
            if pause:
                yield Pause(pause)
            wait_s = tries.patience_s()
            if failure is not None:
                yield from self._refresh(lost, started + block_s)
            elif isinstance(error, ClusterDownError):
                yield from self._refresh(None, started + block_s)

    def _ask_apart(self, reads: Batch, started: float) -> Routed[list[Any]]:
        """Return the replies to reads of many trees, in place of those of a node that does not answer the
        error. A lost connection is made again once, since a node may have restarted or been replaced."""
        replies: list[Any] = [None] * len(reads)
        waiting = units_of(reads)
        for attempt in range(MAX_HOPS + 1):
            refused: list[Unit] = []
            lost: Address | None = None
            groups = group_by_node(waiting, self.slots, in_order=False)
            addresses = [address for address, _ in groups]
            for (address, wait_s), (_, run) in zip(self._in_turn(addresses, started), groups, strict=True):
                result = yield AtNode(address, [each for unit in run for each in unit.request], wait_s)
                if isinstance(result, AttemptFailed):
                    lost = address
                    refused += self._place(result.replies, address, run, replies, result.error)
                else:
                    refused += self._place(result, address, run, replies)
            waiting = [each for each in refused if _is_worth_another(each.refusal, attempt)]
            for unit in refused:
                if unit not in waiting and unit.refusal is not None:
                    replies[unit.start] = translate(unit.refusal, self._where)
            if not waiting:
                break
            if lost is not None or any(type(unit.refusal) is ClusterDownError for unit in waiting):
                yield from self._refresh(lost, started)
        raise_error(reads, replies, self._where)
        return replies

    def _try_once(self, reads: Batch) -> Routed[list[Any]]:
        """Return the replies to reads of one slot, all None if its node does not answer them."""
        address = self.slots.node_of(units_of(reads)[0].slot)
        wait_s = TRY_ONCE_S if self._patience_s is None else min(TRY_ONCE_S, self._patience_s / 2)
        result = yield AtNode(address, reads, wait_s)
        if isinstance(result, AttemptFailed):
            return [None] * len(reads)
        error = _not_here(reads, result)
        if isinstance(error, MovedError):
            yield from self._refresh(None, time.monotonic())
        return [None] * len(reads) if error else result

    def _place(
        self,
        received: list[Any],
        address: Address,
        run: list[Unit],
        replies: list[Any],
        failure: RedisError | None = None,
    ) -> list[Unit]:
        """Put the received replies at their units' indexes. Return the units that were refused, or got no
        reply because of `failure`, with their redirects applied."""
        refused = []
        end = 0
        for unit in run:
            start = end + (1 if unit.ask_at else 0)
            end = start + unit.size
            found = received[start:end]
            if len(found) < unit.size:
                unit.refusal = failure
            else:
                unit.refusal = _not_here(unit.commands, found)
            unit.ask_at = None
            if unit.refusal is None:
                replies[unit.start : unit.start + unit.size] = found
            else:
                self._redirect(unit, address)
                refused.append(unit)
        return refused

    def _redirect(self, unit: Unit, source: Address) -> None:
        match unit.refusal:
            case AskError(host=host, port=port, slot_id=slot) as refusal:
                address = (host or source[0], port)
                if isinstance(refusal, MovedError):
                    self.slots.moved(slot, address)
                else:
                    unit.ask_at = address
            case NoScriptError():
                unit.commands = [as_eval(command) for command in unit.commands]

    def _in_turn(
        self, addresses: Sequence[Address], started: float
    ) -> Iterator[tuple[Address, float | None]]:
        """Yield nodes that are asked one after another, each with the time that it may take: with patience,
        its part of what is left since `started`."""
        for done, address in enumerate(addresses):
            wait_s = None
            if self._patience_s is not None:
                left_s = self._patience_s - (time.monotonic() - started)
                wait_s = max(left_s / (len(addresses) - done), MIN_WAIT_S)
            yield address, wait_s

    def _refresh(self, lost: Address | None, started: float) -> Routed[RedisError | None]:
        """Reload the slot map, trying `lost` last. Return None on success, or else the last error."""
        error: RedisError | None = None
        for address, wait_s in self._in_turn(self.slots.candidates(lost), started):
            result = yield AtNode(address, [("CLUSTER", "SLOTS")], wait_s)
            if isinstance(result, AttemptFailed):
                error = result.error
            elif isinstance(result[0], RedisError):
                error = result[0]
            elif not result[0]:
                error = ClusterDownError("its nodes serve no slot yet")
            else:
                self.slots.learn(result[0], address)
                return None
        return error

    def _ask_all(
        self, batch: Batch, optional: Batch, started: float
    ) -> Routed[list[tuple[str, list[Any] | FDStoreError]]]:
        found: list[tuple[str, list[Any] | FDStoreError]] = []
        for address, wait_s in self._in_turn(self.slots.primaries, started):
            result = yield AtNode(address, [*batch, *optional], wait_s)
            if isinstance(result, AttemptFailed):
                error: RedisError | None = result.error
            else:
                error = _first_error(result[: len(batch)])
                result[len(batch) :] = without_errors(result[len(batch) :])
            found.append((format_address(address), translate(error, self._where) if error else result))
        return found

    # --- lanes

    def _send(self, batch: Batch, name: str, lanes: dict[str, Lane]) -> Routed[None]:
        units = units_of(batch)
        lane = lanes.get(name)
        if lane is None:
            lane = lanes[name] = Lane(self.slots.node_of(units[0].slot))
        lane.batches.append(batch)
        if not lane.broken:
            commands = [command for unit in units for command in unit.commands]
            failure = yield SendAt(lane.address, commands, name)
            if failure is not None:
                yield from self._break(lane, name)

    def _receive(self, name: str, lanes: dict[str, Lane]) -> Routed[list[Any]]:
        lane = lanes[name]
        batch = lane.batches.popleft()
        sent = True
        if not lane.broken:
            result = yield ReceiveAt(name)
            if isinstance(result, list):
                refusal = _not_here(batch, result)
                if refusal is None:
                    raise_error(batch, result, self._where)
                    replies: list[Any] = result
                    return replies
            else:
                sent = result.sent
            if not isinstance(result, list) or isinstance(refusal, MovedError):
                yield from self._break(lane, name)
        if not lane.batches and lane.broken:
            del lanes[name]  # the next batch opens a lane to the right node
        return (yield from self._ask(batch, time.monotonic(), sent=sent))

    def _break(self, lane: Lane, name: str) -> Routed[None]:
        lane.broken = True
        yield Drop(name)


def _not_here(commands: Batch, replies: list[Any]) -> RedisError | None:
    return next(
        (error for error in map(error_in, commands, replies) if isinstance(error, NOT_ON_THIS_NODE)), None
    )


def _is_worth_another(refusal: Exception | None, attempt: int) -> bool:
    """Return whether reads of many trees are sent again after so many further attempts: to where a slot has
    moved, or once more after an error that took no time."""
    if isinstance(refusal, AskError):
        return attempt < MAX_HOPS
    return attempt == 0 and not isinstance(refusal, LostReply)


def _first_error(replies: list[Any]) -> RedisError | None:
    return next((reply for reply in replies if isinstance(reply, RedisError)), None)
