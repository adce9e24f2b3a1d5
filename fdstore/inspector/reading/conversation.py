"""A page of the conversation of a process, read from Redis."""

from __future__ import annotations

from collections.abc import Collection

from fdstore.agents.loop.record_facts import read_facts
from fdstore.inspector.reading.ask_entries import entries_of_lane, with_counts
from fdstore.inspector.reading.build_entries import MAX_TEXT_CHARS, build_entries, end_entry, with_losses
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.reading.pending import ProcessWait, mark_pending, what_pends
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import ProcessRecord, Record
from fdstore.store.processes import journal
from fdstore.wire.operation import Operation

MAX_RECORDS = 500
"""The most records of a page."""

LAST_RECORDS = 50
"""Records at the end of a journal that are searched for the calls that are pending."""


class ConversationPage(Record, frozen=True, kw_only=True):
    """A part of the conversation of a process, and the process at that time.

    The page has the journal records `start` to `next` - 1, of `length` (positions begin with 0); the next
    page begins at `next`. At the end of the journal, `pending` says what the process waits for, and the
    last entry is its `end` if it has ended. `input` and `codes` are those of a pipeline: the descriptor
    that it reads, and the exit codes of its commands, separated by commas. `now` is the Redis time.
    """

    process: ProcessRecord
    now: float
    start: int
    next: int
    length: int
    entries: tuple[ConversationEntry, ...]
    pending: ProcessWait | None = None
    input: str = ""
    codes: str = ""

    @property
    def is_last(self) -> bool:
        """Return whether the page reaches the end of the journal."""
        return self.next >= self.length

    @property
    def is_complete(self) -> bool:
        """Return whether nothing will follow this page."""
        return self.is_last and self.process.state in ENDED


def conversation(
    prefix: str,
    process: str,
    start: int = 0,
    count: int = 100,
    *,
    max_chars: int = MAX_TEXT_CHARS,
    after_loss: int = 0,
) -> Operation[ConversationPage]:
    """Return up to `count` journal records of a process from position `start` on, as entries; a negative
    `start` counts from the end. Texts are cut to `max_chars` characters. A loss is shown before the record
    that followed it; who follows a conversation gives the losses of the page before, as `after_loss`, since
    no record may have followed yet.

    Fewer records if they are large (`journal.MAX_WINDOW_BYTES`), whatever the length of the journal. One
    round trip for 25 records, at most three more, and one for each record of a lane of asks. Raises
    `NotFound`, `DamagedRecord`.

    >>> from fdstore.inspector.reading.conversation import conversation
    >>> page = store.run(conversation(store.prefix, proc.id))
    >>> page.process.state, page.entries
    ('open', ())
    """
    window = yield from journal.read_window(prefix, process, start, max(1, min(count, MAX_RECORDS)))
    record = window.process
    if record.kind == "asks":
        entries = yield from entries_of_lane(prefix, record, window.records, window.first, max_chars)
    else:
        entries = build_entries(window.records, window.first, max_chars=max_chars, begun=record.started_at)
        entries = yield from with_counts(prefix, process, entries)
    after = window.first + len(window.records)
    pending = None
    if after >= window.length:
        last, has_answer = entries, any(each.kind == "answer" for each in entries)
        if record.state in ("running", "waiting") and not has_answer and after and record.kind is None:
            # the calls of the last answer are before this page
            earlier = max(0, after - LAST_RECORDS)
            before = yield from journal.read_window(prefix, process, earlier, after - earlier)
            last = build_entries(before.records, before.first, max_chars=0)
        _, open_calls = mark_pending(last, record)
        entries, _ = mark_pending(entries, record) if has_answer else (entries, [])
        last_at = max((each.at for each in last if each.at is not None), default=None)
        pending = what_pends(record, open_calls, last_at, window.now)
    shown = [
        each
        for each in window.losses
        if each.number > after_loss
        and window.first <= each.records < (window.length + 1 if after >= window.length else after)
    ]
    entries = with_losses(entries, shown) if shown else entries
    if after >= window.length and record.state in ENDED:
        entries.append(end_entry(record, window.length, max_chars))
    return ConversationPage(
        process=record,
        now=window.now,
        start=window.first,
        next=after,
        length=window.length,
        entries=tuple(entries),
        pending=pending,
        input=window.input,
        codes=window.codes,
    )


def find_calls(
    prefix: str, process: str, calls: Collection[str], before: int, count: int, *, max_chars: int
) -> Operation[dict[str, ConversationEntry]]:
    """Return those of these calls that are in the `count` records before the position `before`, by their
    keys, with arguments of at most `max_chars` characters. Fewer records are searched if they are large
    (`journal.MAX_WINDOW_BYTES`). No round trip if there is nothing to find, else those of
    `journal.read_window`. Raises `NotFound`.

    >>> from fdstore.inspector.reading.conversation import find_calls
    >>> store.run(find_calls(store.prefix, proc.id, ["turn1:toolu_1"], 0, 60, max_chars=100))
    {}
    """
    first = max(0, before - count)
    if not calls or first == before:
        return {}
    window = yield from journal.read_window(prefix, process, first, before - first)
    entries = build_entries(window.records, window.first, max_chars=max_chars)
    return {each.call: each for each in entries if each.kind == "call" and each.call in calls}


def position_since(prefix: str, process: str, at: float) -> Operation[int]:
    """Return the position of the first journal record that was written at `at` or later (seconds since the
    epoch by Redis), or the length of the journal. Records without a time count as older; the task of the
    process, which has none, is included if nothing is older. 15 round trips for 10 000 records. Raises
    `NotFound`."""
    window = yield from journal.read_window(prefix, process, 0, 1)
    low, high = 0, window.length
    while low < high:
        middle = (low + high) // 2
        window = yield from journal.read_window(prefix, process, middle, 1)
        if not window.records:
            high = middle
            continue
        written_ms = read_facts(window.records[0]).at_ms
        if written_ms is None or written_ms / 1000 < at:
            low = middle + 1
        else:
            high = middle
    return low if low > 1 else 0
