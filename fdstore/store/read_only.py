"""The writes of an operation: refused, for read-only access to a store, also on a Redis that is unsafe or
full; or noted in its span.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fdstore.errors import LookingOnly
from fdstore.telemetry import tracing
from fdstore.wire.operation import (
    Abandon,
    Alongside,
    Batch,
    Block,
    Disk,
    Everywhere,
    Operation,
    Receive,
    Request,
    Send,
    Upkeep,
    served,
)
from fdstore.wire.scripts import is_read, name_of

T = TypeVar("T")


def read_only(operation: Operation[T], where: str) -> Operation[T]:
    """Run an operation that may only read. A request that contains a write is not sent; `LookingOnly` is
    raised in the operation instead, but for upkeep."""

    def serve(request: Request) -> Operation[Any]:
        if isinstance(request, Upkeep):
            return None
        if (write := _write_in(request)) is not None:
            raise LookingOnly(where, write)
        return (yield request)

    return served(operation, serve)


def traced(operation: Operation[T]) -> Operation[T]:
    """Run an operation in a span (see `tracing.operation`), which says whether it writes."""
    with tracing.operation(operation) as wrote:
        return (yield from operation if wrote is None else _noting_writes(operation, wrote))


def _noting_writes(operation: Operation[T], wrote: Callable[[], None]) -> Operation[T]:
    """Run an operation, and call `wrote` before each request that contains a write."""

    def serve(request: Request) -> Operation[Any]:
        if _write_in(request) is not None:
            wrote()
        return (yield request)

    return served(operation, serve)


def _write_in(request: Request) -> str | None:
    """Return the name of the first write in a request, or None."""
    return next((name_of(command) for command in _commands_of(request) if not is_read(command)), None)


def _commands_of(request: Request) -> Batch:
    match request:
        case Send(batch) | Everywhere(batch) | Upkeep(batch):
            return batch
        case Alongside(reads, batch):
            return [*reads, *batch]
        case Block(command):
            return [command]
        case Receive() | Abandon() | Disk():
            return []
        case _:
            return request
