"""Count the round trips of an operation."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from fdstore.client import Store


def count_round_trips(store: Store, operation: Generator[Any, Any, Any]) -> tuple[Any, int]:
    count = 0

    def relay() -> Generator[Any, Any, Any]:
        nonlocal count
        reply: Any = None
        try:
            while True:
                request = operation.send(reply)
                count += 1
                reply = yield request
        except StopIteration as done:
            return done.value

    return store.run(relay()), count
