"""Runs operations on a Redis Cluster: finds the node for each request, and another when it was wrong.

`Router.routed` turns an operation for one Redis into one for a Cluster. It is a generator around a
generator: what the inner one asks for as if there were one server, the outer one asks of single nodes,
one try at a time. So all that is hard about a Cluster is here once, for both runners, and without a
socket.

    the node lost        connect again, after asking the others who serves the slot now
    MOVED                the slot is another node's: ask there from now on
    ASK                  the slot is moving, and the key is there or nowhere: ask there this once
    TRYAGAIN             the slot is moving, and several keys are named (see `slots`): later
    CLUSTERDOWN          nobody serves the slot, as until a failover: later
    NOSCRIPT             each node learns the scripts by itself

All of it until `wire.DEADLINE_S` is over, as with one Redis. Units that only read go to their nodes in
one request each; as soon as one writes, order is kept, and from the first that was refused on all are
sent again, which is safe for every request (see `operation`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

import msgspec
from redis.exceptions import AskError, ClusterDownError, MovedError, NoScriptError, RedisError

from fdstore.errors import FDStoreError, InvalidArgument
from fdstore.urls import Address, join_addresses
from fdstore.wire.operation import Abandon, Batch, Block, Everywhere, Operation, Receive, Request, Send
from fdstore.wire.retry import (
    NOT_ON_THIS_NODE,
    SOCKET_TIMEOUT_S,
    RetryState,
    error_in,
    raise_error,
    translate,
)
from fdstore.wire.scripts import as_eval, only_reads
from fdstore.wire.slots import Slots, Unit, group_by_node, units_of

T = TypeVar("T")

REDIRECTS = (AskError, NoScriptError)
"""Refusals that say what to do, so that it is done at once."""

MAX_HOPS = 5
"""How often in a row that is believed: while a slot settles, two nodes may both send us to the other."""


class AtNode(msgspec.Struct, frozen=True):
    """One try of a batch at one node, that waits at most `wait_s` seconds for bytes to come (None: as long as
    is usual). Answer: its replies, errors among them, or what `AttemptFailed` it off."""

    address: Address
    batch: Batch
    wait_s: float | None = None


class SendAt(msgspec.Struct, frozen=True):
    """Send to one node and do not wait, over the lane's connection. Answer: None or `AttemptFailed`."""

    address: Address
    batch: Batch
    lane: str


class ReceiveAt(msgspec.Struct, frozen=True):
    """Wait for the replies to the lane's oldest batch. Answer: as for `AtNode`."""

    lane: str


class Drop(msgspec.Struct, frozen=True):
    """Give the lane's connection up, with what is on its way."""

    lane: str


class Pause(msgspec.Struct, frozen=True):
    """Wait."""

    seconds: float


class AttemptFailed(msgspec.Struct, frozen=True):
    """A try that did not come to all its replies. `sent`: the node may have received it."""

    error: RedisError
    sent: bool
    replies: list[Any] = []


Routed: TypeAlias = Generator[Any, Any, T]
"""An operation for the nodes of a Cluster: yields the requests above, and what needs no Redis."""


class Lane:
    """Batches on their way to one node, oldest first. Once it is broken they are asked for one by one."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.batches: deque[Batch] = deque()
        self.broken = False


class Router:
    """Knows the Cluster of one client."""

    def __init__(self, where: str, seeds: tuple[Address, ...]) -> None:
        self._where = where
        self.slots = Slots(seeds)

    def routed(self, operation: Operation[T]) -> Routed[T]:
        """The operation, for nodes of a Cluster."""
        lanes: dict[str, Lane] = {}
        try:
            request = next(operation)
            while True:
                try:
                    reply = yield from self._serve(request, lanes)
                except (FDStoreError, KeyboardInterrupt) as error:
                    request = operation.throw(error)
                else:
                    request = operation.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            operation.close()

    def load(self) -> Routed[None]:
        """Asks the nodes for the map until one answers. Raises `StoreUnavailable`, `InvalidArgument`."""
        error = yield from self._refresh(None)
        if error is None:
            return
        if "cluster support disabled" in str(error):
            raise InvalidArgument("url", f"{self._where} is no Redis Cluster; say redis://") from error
        raise translate(error, self._where) from error

    def _serve(self, request: Request, lanes: dict[str, Lane]) -> Routed[Any]:
        if not self.slots.primaries:
            yield from self.load()
        match request:
            case list():
                return (yield from self._ask(request))
            case Block(command, seconds):
                return (yield from self._ask([command], seconds))[0]
            case Send(batch, lane):
                return (yield from self._send(batch, lane, lanes))
            case Receive(lane):
                return (yield from self._receive(lane, lanes))
            case Everywhere(batch):
                return (yield from self._ask_everybody(batch))
            case Abandon(lane):
                lanes.pop(lane, None)
        return (yield request)

    def _ask(self, batch: Batch, block_s: float = 0.0, *, sent: bool = False) -> Routed[list[Any]]:
        replies: list[Any] = [None] * len(batch)
        in_order = not all(map(only_reads, batch))
        waiting = units_of(batch)
        tries = RetryState(
            self._where, batch, [], sent=sent, started=time.monotonic(), block_s=block_s, fails_over=True
        )
        wait_s = block_s + SOCKET_TIMEOUT_S if block_s else None
        hops = 0
        while True:
            refused: list[Unit] = []
            cut: AttemptFailed | None = None
            for address, run in group_by_node(waiting, self.slots, in_order=in_order):
                answer = yield AtNode(address, [command for unit in run for command in unit.request], wait_s)
                if isinstance(answer, AttemptFailed):
                    cut, lost, sent = answer, address, sent or answer.sent
                    failed = self._take(answer.replies, address, run, replies, answer.error)
                else:
                    failed = self._take(answer, address, run, replies)
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
            hops = 0
            tries.sent = sent
            pause = tries.after(error)
            if pause:
                yield Pause(pause)
            wait_s = tries.patience_s()
            if cut is not None:
                yield from self._refresh(lost)
            elif isinstance(error, ClusterDownError):
                yield from self._refresh(None)

    def _take(
        self,
        answer: list[Any],
        address: Address,
        run: list[Unit],
        replies: list[Any],
        cut: RedisError | None = None,
    ) -> list[Unit]:
        """Puts the replies in their places; the units that were refused or `cut` off, and know where to
        go now."""
        refused = []
        end = 0
        for unit in run:
            start = end + (1 if unit.ask_at else 0)
            end = start + unit.size
            found = answer[start:end]
            if len(found) < unit.size:
                unit.refusal = cut
            else:
                unit.refusal = _not_here(unit.commands, found)
            unit.ask_at = None
            if unit.refusal is None:
                replies[unit.start : unit.start + unit.size] = found
            else:
                self._redirect(unit, address)
                refused.append(unit)
        return refused

    def _redirect(self, unit: Unit, asked: Address) -> None:
        match unit.refusal:
            case AskError(host=host, port=port, slot_id=slot) as said:
                address = (host or asked[0], port)
                if isinstance(said, MovedError):
                    self.slots.moved(slot, address)
                else:
                    unit.ask_at = address
            case NoScriptError():
                unit.commands = [as_eval(command) for command in unit.commands]

    def _refresh(self, lost: Address | None) -> Routed[RedisError | None]:
        """Asks for the map, of `lost` last. None if somebody answered, else why the last one did not."""
        error: RedisError | None = None
        for address in self.slots.everybody(lost):
            answer = yield AtNode(address, [("CLUSTER", "SLOTS")])
            if isinstance(answer, AttemptFailed):
                error = answer.error
            elif isinstance(answer[0], RedisError):
                error = answer[0]
            elif not answer[0]:
                error = ClusterDownError("its nodes serve no slot yet")
            else:
                self.slots.learn(answer[0], address)
                return None
        return error

    def _ask_everybody(self, batch: Batch) -> Routed[list[tuple[str, list[Any] | FDStoreError]]]:
        found: list[tuple[str, list[Any] | FDStoreError]] = []
        for address in self.slots.primaries:
            answer = yield AtNode(address, batch)
            error = answer.error if isinstance(answer, AttemptFailed) else _first_error(answer)
            found.append((join_addresses(address), translate(error, self._where) if error else answer))
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
            cut = yield SendAt(lane.address, commands, name)
            if cut is not None:
                yield from self._break(lane, name)

    def _receive(self, name: str, lanes: dict[str, Lane]) -> Routed[list[Any]]:
        lane = lanes[name]
        batch = lane.batches.popleft()
        if not lane.broken:
            answer = yield ReceiveAt(name)
            if isinstance(answer, list):
                refusal = _not_here(batch, answer)
                if refusal is None:
                    raise_error(batch, answer, self._where)
                    found: list[Any] = answer
                    return found
            if not isinstance(answer, list) or isinstance(refusal, MovedError):
                yield from self._break(lane, name)
        if not lane.batches and lane.broken:
            del lanes[name]  # what is sent next goes to the right node
        return (yield from self._ask(batch, sent=True))

    def _break(self, lane: Lane, name: str) -> Routed[None]:
        lane.broken = True
        yield Drop(name)


def _not_here(commands: Batch, replies: list[Any]) -> RedisError | None:
    return next(
        (error for error in map(error_in, commands, replies) if isinstance(error, NOT_ON_THIS_NODE)), None
    )


def _first_error(answer: list[Any]) -> RedisError | None:
    return next((reply for reply in answer if isinstance(reply, RedisError)), None)
