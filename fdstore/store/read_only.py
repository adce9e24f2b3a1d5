"""Read-only access to a store, also on a Redis that is unsafe or full."""

from __future__ import annotations

from typing import TypeVar

from fdstore.errors import FDStoreError, LookingOnly
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
)
from fdstore.wire.scripts import is_read, name_of

T = TypeVar("T")


def read_only(operation: Operation[T], where: str) -> Operation[T]:
    """Run an operation that may only read. A request that contains a write is not sent; `LookingOnly` is
    raised in the operation instead."""
    try:
        request = next(operation)
        while True:
            write = _write_in(request)
            try:
                if write is not None:
                    raise LookingOnly(where, write)
                reply = yield request
            except FDStoreError as error:
                request = operation.throw(error)
            else:
                request = operation.send(reply)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        operation.close()


def _write_in(request: Request) -> str | None:
    """Return the name of the first write in a request, or None."""
    return next((name_of(command) for command in _commands_of(request) if not is_read(command)), None)


def _commands_of(request: Request) -> Batch:
    match request:
        case Send(batch) | Everywhere(batch):
            return batch
        case Alongside(reads, batch):
            return [*reads, *batch]
        case Block(command):
            return [command]
        case Receive() | Abandon() | Disk():
            return []
        case _:
            return request
