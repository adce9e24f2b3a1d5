"""The journal of a process: an append-only list of JSON records.

Records are appended at a known position, so retries are idempotent, and an attempt that was replaced is
fenced off. The same step counts the models' answers among them for the tree's limits.
"""

from __future__ import annotations

import msgspec

from fdstore.records import TOKEN_COUNTS, TokenUsage
from fdstore.store.ceilings import run_with_ceilings
from fdstore.store.keys import process_keys
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.wire.operation import Operation
from fdstore.wire.scripts import script, text


class Appended(msgspec.Struct, frozen=True):
    """The length of the journal, and the limit of model calls or tokens that the tree has reached, if any:
    its name, its value, and how much is used."""

    length: int
    reached: tuple[str, int, int] | None = None


def append(
    handle: ProcessHandle, position: int, records: list[str], *, usage: TokenUsage | None = None
) -> Operation[Appended]:
    """Append records at `position`. `usage` is that of a model, if one of them is its answer. Without
    records, write nothing. Raises `Fenced`, `NotFound`."""
    process = handle.keys
    keys = (process.record, process.journal, process.tree.record)
    counts = [0 if usage is None else getattr(usage, name) for name in TOKEN_COUNTS]
    answers = 0 if usage is None else 1
    command = script("journal")(keys, handle.attempt, position, answers, *counts, *records)
    [reply] = yield from run_with_ceilings(handle, [command])
    length, *reached = outcome(reply, handle.id)
    if not reached:
        return Appended(int(length))
    name, limit, used = reached
    return Appended(int(length), (text(name), int(limit), int(used)))


def length(handle: ProcessHandle) -> Operation[int]:
    """Return the number of records."""
    [count] = yield [("LLEN", handle.keys.journal)]
    return int(count)


def read(prefix: str, process: str, count: int | None = None) -> Operation[list[bytes]]:
    """Return the records of a process, or the first `count`."""
    if count == 0:
        return []
    keys = process_keys(prefix, process)
    [records] = yield [("LRANGE", keys.journal, 0, -1 if count is None else count - 1)]
    return list(records)
