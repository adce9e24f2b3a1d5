"""The asks of programs as entries: those that a lane has answered, all of a process, and their counts.

The journal of a lane has only the numbers of what it answered; questions and answers are those of the process
that asks (`store.processes.asks`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fdstore.errors import DamagedRecord
from fdstore.inspector.reading.cutting import cut_text, cut_value
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.model.records import ProcessRecord, TokenUsage
from fdstore.store.processes import asks
from fdstore.store.processes.asks import AskRecord
from fdstore.store.record_format import decode_record
from fdstore.text.quantities import format_count
from fdstore.wire.operation import Operation

ASKS_AT_ONCE = 25
"""Asks that one request reads: each may hold whole texts."""


class _Answered(msgspec.Struct, frozen=True, tag="answered", tag_field="kind"):
    """A record of a lane's journal: the asks that it answered together."""

    asks: list[int]


def entry_of(record: AskRecord, max_chars: int) -> ConversationEntry:
    """Return an ask, with its answer if it has one, as an entry."""
    answer = record.answer
    text, chars = cut_text("" if answer is None else answer.error or answer.text, max_chars)
    parts = [
        f"a text of {format_count(len(p), 'character')}" if isinstance(p, str) else p.ref
        for p in record.ask.parts
    ]
    used = None
    if answer is not None and answer.tokens:
        output = min(answer.output_tokens, answer.tokens)
        used = TokenUsage(input_tokens=answer.tokens - output, output_tokens=output)
    return ConversationEntry(
        position=0,
        kind="ask",
        at=None if answer is None or answer.at_ms is None else answer.at_ms / 1000,
        text=text,
        chars=chars,
        number=record.number,
        call=record.call,
        arguments=cut_value({"question": record.ask.question, "parts": parts}, max_chars),
        is_error=answer is not None and bool(answer.error),
        pending=answer is None,
        duration_s=None if answer is None else answer.seconds,
        usage=used,
        process="" if answer is None else answer.lane,
    )


def read_entries(
    prefix: str, process: str, which: Sequence[tuple[str, int]], max_chars: int
) -> Operation[list[ConversationEntry]]:
    """Return these asks of a process, each a call and a number. Raises `DamagedRecord`."""
    found: list[ConversationEntry] = []
    for start in range(0, len(which), ASKS_AT_ONCE):
        records = yield from asks.read_asks(prefix, process, which[start : start + ASKS_AT_ONCE])
        found += [entry_of(record, max_chars) for record in records]
    return found


def read_call(
    prefix: str, process: str, call: str, start: int, count: int, max_chars: int
) -> Operation[tuple[list[ConversationEntry], int]]:
    """Return `count` asks of a call from the `start`-th on, each with its number as `part`, and the number of
    all. Raises `DamagedRecord`."""
    found = yield from asks.list_asks(prefix, process)
    which = [each for each in found if each[0] == call]
    entries = yield from read_entries(prefix, process, which[start : start + count], max_chars)
    return [msgspec.structs.replace(each, part=each.number) for each in entries], len(which)


def place_of_ask(prefix: str, process: str, call: str, number: int) -> Operation[int]:
    """Return how many asks of a call come before the one with this number. Raises `DamagedRecord`."""
    found = yield from asks.list_asks(prefix, process)
    return sum(each < (call, number) for each in found if each[0] == call)


def entries_of_lane(
    prefix: str, lane: ProcessRecord, records: Sequence[bytes], first: int, max_chars: int
) -> Operation[list[ConversationEntry]]:
    """Return the asks of a lane in these records of its journal, of which the first has the position
    `first`."""
    found: list[ConversationEntry] = []
    for position, record in enumerate(records, first):
        if position == 0:
            task = f"answers asks of {lane.parent}, call {lane.call}"
            at = lane.started_at
            found.append(ConversationEntry(position=0, kind="task", text=task, chars=len(task), at=at))
            continue
        try:
            answered = decode_record(record, _Answered, f"the journal of process {lane.id}")
        except DamagedRecord as error:
            found.append(ConversationEntry(position=position, kind="unreadable", text=str(error)))
            continue
        which = [(lane.call or "", number) for number in answered.asks]
        entries = yield from read_entries(prefix, lane.parent or "", which, max_chars)
        found += [
            msgspec.structs.replace(entry, position=position, part=part) for part, entry in enumerate(entries)
        ]
    return found


def with_counts(
    prefix: str, process: str, entries: list[ConversationEntry]
) -> Operation[list[ConversationEntry]]:
    """Return these entries; a call of a program that asked is followed by how many asks are done. One round
    trip, and none without such a call."""
    calls = [entry for entry in entries if entry.kind == "call" and entry.tool == "run_python"]
    if not calls:
        return entries
    counts = yield from asks.read_counts(prefix, [(process, entry.call) for entry in calls])
    of_call = {
        entry.call: msgspec.structs.replace(
            entry,
            kind="asks",
            part=entry.part + COUNTS_PART,
            text=str(each),
            chars=len(str(each)),
            arguments=None,
        )
        for entry, each in zip(calls, counts, strict=True)
        if each is not None
    }
    return [
        each
        for entry in entries
        for each in (
            (entry, of_call[entry.call]) if entry.kind == "call" and entry.call in of_call else (entry,)
        )
    ]


COUNTS_PART = 10_000
"""The part of an entry with counts, less that of its call: no record makes as many entries."""
