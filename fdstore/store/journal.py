"""The journal of a process: one JSON record a line of its life, append-only.

Records go to a known position, so a repeated append writes nothing twice, and an attempt that was
replaced cannot write at all. The answers of models among them are counted for the tree in the same step.
"""

from __future__ import annotations

import msgspec

from fdstore.store.ceilings import beside
from fdstore.store.content_info import ProcessHandle
from fdstore.store.keys import process_keys
from fdstore.store.outcomes import outcome
from fdstore.wire.operation import Operation
from fdstore.wire.scripts import script, text


class Appended(msgspec.Struct, frozen=True):
    """How long the journal is now, and the daily limit (its name and value) that the tree has reached."""

    length: int
    reached: tuple[str, int] | None = None


def append(
    handle: ProcessHandle, position: int, records: list[str], *, answers: int = 0, tokens: int = 0
) -> Operation[Appended]:
    """Adds records after the first `position` ones: `answers` of them are a model's, which took so many
    tokens. Without records nothing is written. Raises `Fenced`, `NotFound`."""
    keys = handle.keys
    added = script("journal")(
        (keys.record, keys.journal, keys.tree.record), handle.attempt, position, answers, tokens, *records
    )
    [reply] = yield from beside(handle, [added])
    length, *reached = outcome(reply, handle.id)
    return Appended(int(length), (text(reached[0]), int(reached[1])) if reached else None)


def length(handle: ProcessHandle) -> Operation[int]:
    """How many records there are."""
    [count] = yield [("LLEN", handle.keys.journal)]
    return int(count)


def read(prefix: str, process: str, count: int | None = None) -> Operation[list[bytes]]:
    """The records of a process, or its first `count`."""
    if count == 0:
        return []
    keys = process_keys(prefix, process)
    [records] = yield [("LRANGE", keys.journal, 0, -1 if count is None else count - 1)]
    return list(records)
