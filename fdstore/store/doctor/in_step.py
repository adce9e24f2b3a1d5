"""Run several operations at once, over one connection: the batches that they yield next are sent as one. What
else they request, as a range of an object, is served one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from fdstore.errors import DamagedRecord
from fdstore.store.record_format import replies_or_damage
from fdstore.wire.operation import Batch, Operation

T = TypeVar("T")


def in_step(operations: Iterable[Operation[T]]) -> Operation[list[T]]:
    """Return the results of operations. Takes as many round trips as the longest of them, if they yield
    batches of commands alone. Each gets the errors of its own damaged records."""
    results: dict[int, T] = {}
    waiting: dict[int, tuple[Operation[T], Batch]] = {}

    def go_on(
        number: int, operation: Operation[T], replies: Any, error: Exception | None = None
    ) -> Operation[None]:
        try:
            request = operation.send(replies) if error is None else operation.throw(error)
            while not isinstance(request, list):
                try:
                    reply = yield request
                except Exception as failed:  # noqa: BLE001 - thrown into the operation
                    request = operation.throw(failed)
                else:
                    request = operation.send(reply)
            waiting[number] = operation, request
        except StopIteration as done:
            results[number] = done.value
            waiting.pop(number, None)

    for number, operation in enumerate(operations):
        yield from go_on(number, operation, None)
    while waiting:
        turn = list(waiting.items())
        replies = yield from replies_or_damage([each for _, (_, batch) in turn for each in batch])
        begin = 0
        for number, (operation, batch) in turn:
            ours = replies[begin : begin + len(batch)]
            begin += len(batch)
            damage = next((each for each in ours if isinstance(each, DamagedRecord)), None)
            yield from go_on(number, operation, ours, damage)
    return [results[number] for number in sorted(results)]
