"""The journal of a process: an append-only list of JSON records.

Records are appended at a known position, so retries are idempotent, and an attempt that was replaced is
fenced off. The same step counts the models' answers among them for the tree's limits.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fdstore.errors import Fenced
from fdstore.model.records import ProcessRecord, Record, TokenUsage
from fdstore.store.clock import seconds_of
from fdstore.store.keys import process_keys
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import tool_calls
from fdstore.store.processes.losses import Loss, decode_losses
from fdstore.store.processes.process_records import decode_reply, missing
from fdstore.store.processes.task_words import error_words
from fdstore.store.record_format import decode_count, decoding
from fdstore.store.trees.ceilings import run_with_ceilings
from fdstore.wire.operation import Batch, Command, Operation
from fdstore.wire.scripts import script, text

MAX_TRIES = 20
"""The most times that `add` looks for the end of a journal that others write too."""


class Appended(msgspec.Struct, frozen=True):
    """The length of the journal, and the limit of model calls or tokens that the tree has reached, if any:
    its name, its value, and how much is used. `holds_any`: whether the process holds a descriptor, if that
    was asked."""

    length: int
    reached: tuple[str, int, int] | None = None
    holds_any: bool = False


def append(
    handle: ProcessHandle,
    position: int,
    records: list[str],
    *,
    usage: TokenUsage | None = None,
    results: Sequence[Command] = (),
    ask_fds: bool = False,
) -> Operation[Appended]:
    """Append records at `position`. `usage` is that of a model, if one of them is its answer. Without
    records, write nothing. In the same round trip, before that, store these `results` of calls (see
    `tool_calls`). Raises `Fenced`, `NotFound`."""
    process = handle.keys
    used = usage or TokenUsage()
    command = script("journal")(
        process=process.record,
        records=process.journal,
        tree=process.tree.record,
        id=process.process,
        attempt=handle.attempt,
        position=position,
        answers=0 if usage is None else 1,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_tokens=used.cache_read_tokens,
        cache_written_tokens=used.cache_write_tokens,
        error_words=error_words(records),
        new_records=records,
    )
    held: Batch = [("HLEN", process.fds)] if ask_fds else []
    reply, *count = yield from tool_calls.run_beside(
        handle, [*results], lambda first: run_with_ceilings(handle, [*first, command, *held])
    )
    length, *reached = outcome(reply, handle.id)
    holds_any = any(count)
    if not reached:
        return Appended(int(length), None, holds_any)
    with decoding(f"the record of tree {handle.keys.tree.tree}"):
        name, limit, used = reached
        return Appended(int(length), (text(name), decode_count(limit), decode_count(used)), holds_any)


def add(handle: ProcessHandle, records: list[str]) -> Operation[None]:
    """Append records at the end of a journal that several writers have. Two round trips, and two more for
    each time that another writer was faster. Raises `Fenced`, `NotFound`."""
    for tries_left in reversed(range(MAX_TRIES)):
        try:
            yield from append(handle, (yield from length(handle)), records)
        except Fenced:
            if not tries_left:
                raise
        else:
            return


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


class JournalWindow(Record, frozen=True, kw_only=True):
    """A part of a journal: its `records`, the position of the first one (from 0), the length of the journal,
    the process at that time, and the Redis time. `input` and `codes` are those of a pipeline: what it reads,
    and the exit codes of its stages once all have ended. `losses` are the last ones of the process."""

    process: ProcessRecord
    now: float
    length: int
    first: int
    records: tuple[bytes, ...]
    input: str = ""
    codes: str = ""
    losses: tuple[Loss, ...] = ()


RECORDS_AT_ONCE = 25
MAX_WINDOW_BYTES = 2_000_000
"""No more records are read after this many bytes, so that huge records do not fill the memory."""


def read_window(prefix: str, process: str, start: int, count: int) -> Operation[JournalWindow]:
    """Return up to `count` records from position `start` on; a negative one counts from the end. Fewer if
    they are large, but at least one if there is one. One round trip for `RECORDS_AT_ONCE` records, and one
    more to count from the end. Raises `NotFound`, `DamagedRecord`."""
    keys = process_keys(prefix, process)
    state: Batch = [("HGETALL", keys.record), ("TIME",), ("LLEN", keys.journal)]
    records: list[bytes] = []
    first = start
    if start < 0:
        flat, time, length = yield state
        first = max(0, length + start)
    else:
        last = start + min(count, RECORDS_AT_ONCE) - 1
        flat, time, length, found = yield [*state, ("LRANGE", keys.journal, start, last)]
        records += found
    if not flat:
        raise (yield from missing(keys))
    record, fields = decode_reply(process, flat)
    while len(records) < min(count, length - first) and sum(map(len, records)) < MAX_WINDOW_BYTES:
        begin = first + len(records)
        end = first + min(count, len(records) + RECORDS_AT_ONCE)
        [found] = yield [("LRANGE", keys.journal, begin, end - 1)]
        if not found:
            break
        records += found
    return JournalWindow(
        process=record,
        now=seconds_of(time),
        length=max(length, first + len(records)),
        first=first,
        records=tuple(records),
        input=fields.get("input", ""),
        codes=fields.get("codes", ""),
        losses=decode_losses(fields.get("recent_losses", "")),
    )
