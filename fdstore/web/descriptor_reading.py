"""The use of a descriptor by the agent of a process, from its journal: the call that made it, the pages
that were read.

It is loaded after the page, or on request (`reading=1`): a journal is long, and the text should not wait for
it. At most `MAX_RECORDS` records at the journal's end are examined.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from fdstore.errors import NotFound, PositionOutOfRange, StoreLostData
from fdstore.inspection.conversation import conversation
from fdstore.inspection.entries import ConversationEntry
from fdstore.records import Descriptor, Record
from fdstore.result_facts import Interval
from fdstore.results.coverage import ReadParts, count_in, coverage, merge
from fdstore.store.contents.locating import pages_of_chars
from fdstore.store.keys import AT_ONCE
from fdstore.store.process_handle import ProcessHandle
from fdstore.wire.operation import Operation

MAX_RECORDS = 2000
MAX_PARTS = 100
"""Parts read by characters that are located; more count as not read."""


class Call(Record, frozen=True, kw_only=True):
    """A tool call, by the position of its result in the journal."""

    tool: str
    position: int


class Reading(Record, frozen=True, kw_only=True):
    """The pages of a text that an agent has read, as sorted intervals, and their number; the call whose
    result was stored as this descriptor. `examined` of `length` journal records were looked at; 0 records:
    the process has no conversation."""

    pages: tuple[Interval, ...] = ()
    count: int = 0
    total: int = 0
    made_by: Call | None = None
    examined: int = 0
    length: int = 0


def reading(handle: ProcessHandle, descriptor: Descriptor) -> Operation[Reading]:
    """Return what the agent of a process has read of a descriptor. Some round trips for each 25 records.
    Raises `NotFound`, `DamagedRecord`."""
    entries: list[ConversationEntry] = []
    prefix, start, examined, length = handle.keys.tree.prefix, -MAX_RECORDS, 0, 0
    while examined < MAX_RECORDS:
        found = yield from conversation(prefix, handle.id, start, AT_ONCE, max_chars=0)
        entries += [each for each in found.entries if each.kind == "result" and not each.is_error]
        examined, length = examined + found.next - found.start, found.length
        if found.next >= length or found.next <= max(start, 0):
            break
        start = found.next
    parts = coverage(each.facts for each in entries).get(descriptor.fd, ReadParts())
    pages = yield from _pages(handle, descriptor, parts)
    return Reading(
        pages=pages,
        count=count_in(pages, descriptor.pages),
        total=descriptor.pages,
        made_by=_made_by(entries, descriptor.fd),
        examined=examined,
        length=length,
    )


def _made_by(entries: Iterable[ConversationEntry], fd: str) -> Call | None:
    """Return the first call whose result was stored as this descriptor."""
    for each in entries:
        if any(stored.fd == fd for stored in each.facts.stored):
            return Call(tool=each.tool, position=each.position)
    return None


def _pages(
    handle: ProcessHandle, descriptor: Descriptor, parts: ReadParts
) -> Operation[tuple[Interval, ...]]:
    pages = parts.pages
    if descriptor.kind == "text":
        for first, last in parts.chars[:MAX_PARTS]:
            with suppress(NotFound, PositionOutOfRange, StoreLostData):  # closed or damaged meanwhile
                pages = merge((*pages, (yield from pages_of_chars(handle, descriptor.fd, first, last))))
    return tuple((first, min(last, descriptor.pages)) for first, last in pages if first <= descriptor.pages)
