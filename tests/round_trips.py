"""Serve operations request by request: count their round trips, commands and bytes, or break off."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from fdstore.client import Store
from fdstore.errors import FDStoreError
from fdstore.wire.operation import Receive, Send


@dataclass
class Tally:
    """The cost of operations so far."""

    round_trips: int = 0
    commands: int = 0
    reply_bytes: int = 0


def tallied(operation: Generator[Any, Any, Any], tally: Tally) -> Generator[Any, Any, Any]:
    """Run an operation, and add its cost to `tally`."""
    try:
        request = next(operation)
        while True:
            tally.round_trips += 1
            tally.commands += len(request) if isinstance(request, list) else 1
            try:
                reply = yield request
            except FDStoreError as error:
                request = operation.throw(error)
            else:
                tally.reply_bytes += _size(reply)
                request = operation.send(reply)
    except StopIteration as done:
        return done.value


def _size(reply: Any) -> int:
    if isinstance(reply, (list, tuple)):
        return sum(map(_size, reply))
    return len(reply) if isinstance(reply, (bytes, str)) else 8


def count_round_trips(store: Store, operation: Generator[Any, Any, Any]) -> tuple[Any, int]:
    tally = Tally()
    return store.run(tallied(operation, tally)), tally.round_trips


def count_waits(store: Store, operation: Generator[Any, Any, Any]) -> tuple[Any, int]:
    """Run an operation. Return its result, and how many round trips it would wait for on a network where only
    the latency counts: requests in flight at the same time are one."""

    def waiting() -> Generator[Any, Any, Any]:
        now, sent = 0, defaultdict[str, deque[int]](deque)
        try:
            request = next(operation)
            while True:
                match request:
                    case Send(_, lane):
                        sent[lane].append(now)
                    case Receive(lane):
                        now = max(now, sent[lane].popleft() + 1)
                    case _:
                        now += 1
                request = operation.send((yield request))
        except StopIteration as done:
            return done.value, now

    result: tuple[Any, int] = store.run(waiting())
    return result


def one_request(request: Any) -> Generator[Any, Any, Any]:
    """Return an operation that consists of this request."""
    return (yield request)


def killed_after(store: Store, operation: Generator[Any, Any, Any], requests: int) -> bool:
    """Serve the first requests of an operation and close it, as of a worker that is killed then. Return
    whether it had ended."""
    reply: Any = None
    for _ in range(requests):
        try:
            request = operation.send(reply)
        except StopIteration:
            return True
        reply = store.run(one_request(request))
    operation.close()
    return False
