"""The journal of a process: one JSON record a line of its life, append-only.

Records go to a known position, so a repeated append writes nothing twice, and an attempt that was
replaced cannot write at all.
"""

from __future__ import annotations

from fdstore.store.keys import process_keys
from fdstore.store.operation import Operation
from fdstore.store.scripts import outcome, script
from fdstore.store.views import Namespace


def append(space: Namespace, position: int, records: list[str]) -> Operation[int]:
    """Adds records after the first `position` ones; the new length. Raises `Fenced`, `NotFound`."""
    [reply] = yield [
        script("journal")((space.keys.record, space.keys.journal), space.attempt, position, *records)
    ]
    return int(outcome(reply, space.id)[0])


def length(space: Namespace) -> Operation[int]:
    """How many records there are."""
    [count] = yield [("LLEN", space.keys.journal)]
    return int(count)


def read(prefix: str, process: str, count: int | None = None) -> Operation[list[bytes]]:
    """The records of a process, or its first `count`."""
    if count == 0:
        return []
    keys = process_keys(prefix, process)
    [records] = yield [("LRANGE", keys.journal, 0, -1 if count is None else count - 1)]
    return list(records)
