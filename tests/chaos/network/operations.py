"""The operations of the clients of a test on the store, as they saw them: the history that `checks` judges.

Clients and tests run on one host, so their times (monotonic, in seconds) are comparable.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from fdstore.errors import FDStoreError, UnknownOutcome

Outcome = Literal["acknowledged", "unknown", "refused"]
"""`unknown`: it may have happened, also later. `refused`: it has not happened, and never will."""

UNDOCUMENTED = "not an FDStoreError: "

T = TypeVar("T")


class Operation(msgspec.Struct, kw_only=True):
    """One call of a client.

    subject   what it concerned: the key of a name, the fd of a stream, the path of an export
    value     what it wrote, or read; "" for a name that is not there
    expected  of a put: the value that it was to replace
    error     the type of the error that it raised
    """

    kind: str
    subject: str
    value: str = ""
    expected: str = ""
    outcome: Outcome = "acknowledged"
    error: str = ""
    began_s: float = 0.0
    ended_s: float = 0.0

    @property
    def surely_ended_s(self) -> float:
        """The latest time at which its effect was there: one of unknown outcome may still be on its way."""
        return self.ended_s if self.outcome == "acknowledged" else math.inf


class History:
    """The operations of one thread, written to a file as they end."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")

    @contextmanager
    def record(self, operation: Operation) -> Iterator[Operation]:
        """Record how the block ended. Its errors end here."""
        operation.began_s = time.monotonic()
        try:
            yield operation
        except UnknownOutcome as error:
            operation.outcome, operation.error = "unknown", error.type
        except FDStoreError as error:
            operation.outcome, operation.error = "refused", error.type
        except Exception as error:  # noqa: BLE001 - it is the finding
            operation.outcome, operation.error = "unknown", f"{UNDOCUMENTED}{error!r}"
        operation.ended_s = time.monotonic()
        self.write(operation)

    def write(self, operation: Operation) -> None:
        self._file.write(msgspec.json.encode(operation) + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def read_history(paths: Iterator[Path]) -> list[Operation]:
    """Return the operations in these files, in the order of their ends."""
    decode = msgspec.json.Decoder(Operation).decode
    found = [decode(line) for path in paths for line in path.read_bytes().splitlines()]
    return sorted(found, key=lambda operation: operation.ended_s)


def by_subject(operations: list[T], subject: Callable[[T], str]) -> dict[str, list[T]]:
    """Group operations by what they concern."""
    groups: dict[str, list[T]] = {}
    for operation in operations:
        groups.setdefault(subject(operation), []).append(operation)
    return groups
