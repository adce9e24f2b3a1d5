"""Run several operations at once, over one connection: the batches that they yield next are sent as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from fdstore.errors import DamagedRecord
from fdstore.store.record_format import replies_or_damage
from fdstore.wire.operation import Batch, Operation

T = TypeVar("T")


def in_step(operations: Iterable[Operation[T]]) -> Operation[list[T]]:
    """Return the results of operations that yield batches of commands alone. Takes as many round trips as the
    longest of them. Each gets the errors of its own damaged records."""
    results: dict[int, T] = {}
    waiting: dict[int, tuple[Operation[T], Batch]] = {}

    def go_on(number: int, operation: Operation[T], replies: Any, error: Exception | None = None) -> None:
        try:
            request = operation.send(replies) if error is None else operation.throw(error)
        except StopIteration as done:
            results[number] = done.value
            waiting.pop(number, None)
        else:
            assert isinstance(request, list)
            waiting[number] = operation, request

    for number, operation in enumerate(operations):
        go_on(number, operation, None)
    while waiting:
        turn = list(waiting.items())
        replies = yield from replies_or_damage([each for _, (_, batch) in turn for each in batch])
        begin = 0
        for number, (operation, batch) in turn:
            ours = replies[begin : begin + len(batch)]
            begin += len(batch)
            damage = next((each for each in ours if isinstance(each, DamagedRecord)), None)
            go_on(number, operation, ours, damage)
    return [results[number] for number in sorted(results)]
