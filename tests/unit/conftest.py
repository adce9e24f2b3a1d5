"""A runner that executes operations on a fake Redis and counts round trips."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, TypeVar

import fakeredis
import pytest

from fdstore.client import Store
from fdstore.wire.operation import Alongside, Batch, Disk, NumberedFields, Operation, Receive, Send
from fdstore.wire.scripts import as_eval

T = TypeVar("T")


class CountingRunner:
    """A runner on a fake Redis that records the batch of each round trip in `trips`."""

    where = "a fake"

    def __init__(self) -> None:
        client = fakeredis.FakeRedis(server=fakeredis.FakeServer(), protocol=2)
        self._connection = client.connection_pool.get_connection()
        self._client = client
        self.trips: list[Batch] = []
        self.sent: list[Batch] = []

    def execute(self, *command: Any) -> Any:
        self._connection.send_command(*command)
        return self._connection.read_response()

    def run(self, operation: Operation[T]) -> T:
        on_their_way: deque[Batch] = deque()
        try:
            request: Any = next(operation)
            while True:
                reply: Any = None
                match request:
                    case list():
                        self.trips.append(request)
                        reply = self._serve(request)
                    case Alongside(reads, batch):
                        self.trips.append([*reads, *batch])
                        reply = self._serve(reads), self._serve(batch)
                    case Send(batch, _):
                        self.sent.append(batch)
                        on_their_way.append(batch)
                    case Receive(_):
                        reply = self._serve(on_their_way.popleft())
                    case Disk(call):
                        reply = call()
                request = operation.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            operation.close()

    def read_field(self, fields: NumberedFields, number: int) -> list[bytes | None]:
        return self.run(fields.read(number))

    def _serve(self, batch: Batch) -> list[Any]:
        return [self.execute(*(as_eval(c) if c[0] == "EVALSHA" else c)) for c in batch]

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def runner() -> Iterator[CountingRunner]:
    made = CountingRunner()
    yield made
    made.close()


@pytest.fixture
def store(runner: CountingRunner) -> Store:
    """The blocking client on a fake Redis."""
    return Store(runner, "fdstore", "redis://fake")
