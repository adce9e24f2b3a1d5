"""Load what the page of a descriptor shows: its facts, the text at a position, the first hits of a search.

The work of one request is bounded: one window of text, one step of a search, a few facts, whatever the size
of the content. To count what matches in all of a text is bounded by time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from fdstore.client._async.store import Store
from fdstore.elements.kinds import Interval
from fdstore.errors import InvalidArgument, NotFound, PositionOutOfRange, StoreLostData
from fdstore.inspector.reading.conversation import conversation
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.web.descriptor_page import (
    HEX_BLOCKS,
    DescriptorPage,
    HexPart,
    JournalCall,
    LineCount,
    Look,
    Reading,
    Search,
    Sibling,
    TextPart,
    picture_type,
)
from fdstore.inspector.web.descriptor_query import (
    MAX_HITS,
    PageQuery,
    Position,
    ReadableView,
    SearchQuery,
    marked,
    parse_go,
)
from fdstore.inspector.web.descriptor_rows import BLOCK_BYTES
from fdstore.inspector.web.readable_text import MAX_CHARS, ReadableText, lay_out
from fdstore.model.records import Descriptor, Record
from fdstore.results.coverage import ReadParts, count_in, coverage, merge
from fdstore.store.contents.byte_reading import read_bytes
from fdstore.store.contents.locating import pages_of_chars
from fdstore.store.contents.page_windows import PageText, PageWindow, Side, read_window
from fdstore.store.contents.reading import read
from fdstore.store.contents.search_steps import SearchStep, search_step
from fdstore.store.contents.searching import print_matches
from fdstore.store.keys import AT_ONCE
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes.processes import open_child
from fdstore.store.views.descriptor_facts import DescriptorFacts, content_of, descriptor_facts
from fdstore.store.views.process_window import descriptor_names
from fdstore.text.media_types import IMAGE_TYPES, SIGNATURE_BYTES, TAIL_BYTES, is_cut
from fdstore.text.pattern import Pattern
from fdstore.text.picture_ends import is_whole_jpeg, is_whole_png
from fdstore.text.selection import Part
from fdstore.wire.operation import Operation

COUNT_S = 8.0
"""The time to count the lines that match, enough for some hundred megabytes."""

COUNT_IN_PAGE_S = 3.0
"""The same while a page is awaited."""

LONG_LINE_BYTES = 1_000_000
MAX_LONG_LINES_BYTES = 64_000_000
"""Each line is searched in memory: where they are long, a larger text is not."""

MAX_WALKED_BYTES = 16_000_000
"""The largest picture that is read whole to find its end, if it does not end with it."""

MAX_UNPACKED_PNG_BYTES = 4_000_000
"""The largest PNG that has an end whose pixels are looked at, too."""

PIECE_BYTES = 1_000_000
"""What is read of it at once."""

MAX_RECORDS = 2000
MAX_PARTS = 100
"""Parts read by characters that are located; more count as not read."""


class ContentPart(Record, frozen=True, kw_only=True):
    """A part of a content, for scripts that scroll: as in `DescriptorPage`."""

    descriptor: Descriptor
    position: Position | None
    text: TextPart | None = None
    bytes: HexPart | None = None


class Reader:
    """A descriptor, for one request: loads what it needs."""

    def __init__(self, store: Store, handle: ProcessHandle, fd: str) -> None:
        self.store = store
        self.handle = handle
        self.fd = fd

    @classmethod
    async def open(cls, store: Store, process: str, fd: str) -> Reader:
        """Open an existing process. Raises `NotFound`, `InvalidArgument`."""
        return cls(store, await store.run(open_child(store.prefix, process)), fd)

    async def descriptor(self) -> Descriptor:
        """Return the descriptor as it is now. Raises `NotFound`."""
        descriptor, _ = await self.store.run(content_of(self.handle, self.fd))
        return descriptor

    def look(self, query: PageQuery, descriptor: Descriptor) -> Look:
        """Return the look that a query asks for. Raises `InvalidArgument`."""
        is_hex = query.hex or descriptor.kind == "bytes"
        return Look(
            process=self.handle.id,
            fd=self.fd,
            descriptor=descriptor,
            position=marked(query, descriptor, is_hex=is_hex),
            wrap=query.wrap,
            raw=query.raw,
            colours=query.colours,
            hex=is_hex,
            search=None if query.search is None else Search.of(query.search),
        )

    async def page(self, query: PageQuery, turn: asyncio.Semaphore) -> DescriptorPage:
        """Return what the page shows; it waits for its turn before it reads all of a text. Raises `NotFound`,
        `InvalidArgument`, `PageOutOfRange`, `PositionOutOfRange`."""
        facts = await self.store.run(descriptor_facts(self.handle, self.fd))
        d = facts.descriptor
        is_hex = query.hex or d.kind == "bytes"
        position = parse_go(query.go, d, is_hex=is_hex) if query.go else query.position
        if position is None and d.state == "open" and not is_hex:
            position = Position("page", d.pages, d.pages)  # what a stream has written last
        shown = await self.part(position, is_hex=is_hex)
        role, siblings = _siblings(facts)
        return DescriptorPage(
            process=self.handle.id,
            fd=self.fd,
            descriptor=shown.descriptor,
            content=facts.content,
            producer=facts.producer,
            holder_count=facts.holder_count,
            holders=facts.holders,
            where=facts.where,
            role=role,
            siblings=siblings,
            position=position,
            wrap=query.wrap,
            raw=query.raw,
            colours=query.colours,
            hex=is_hex,
            text=shown.text,
            bytes=shown.bytes,
            readable=await self._readable(query.readable, position, d) if query.readable else None,
            search=await self._first_hits(query.search, d, turn if query.count else None)
            if query.search
            else None,
            reading=await self.reading(d) if query.reading else None,
            others=await self._others() if d.kind == "text" else (),
            is_cut=await self._is_cut(d),
            now_s=facts.now_s,
        )

    async def part(
        self, position: Position | None, *, is_hex: bool = False, side: Side | None = None
    ) -> ContentPart:
        """Return the part at a position, page 1 for None: one page, or with `side` a window. Raises as
        `page`."""
        if is_hex:
            return await self._bytes(position, side or "after")
        if position is not None and position.unit == "offset":
            raise InvalidArgument("offset", "the text has pages, lines and characters; view=hex has offsets")
        unit = position.unit if position else "page"
        part = Part(unit if unit != "offset" else "page", position.first if position else 1, 1)
        window = await self.store.run(read_window(self.handle, self.fd, part, side or "after"))
        pages = window.pages if side else _one(window)
        text = TextPart(page=window.page, line=window.line, char=window.char, pages=pages)
        return ContentPart(descriptor=window.descriptor, position=position, text=text)

    async def _readable(
        self, view: ReadableView, position: Position | None, descriptor: Descriptor
    ) -> ReadableText | None:
        if descriptor.kind != "text" or not descriptor.chars:
            return None
        first = position.first if position and position.unit == "char" and view == "rendered" else 1
        found = await self.store.run(read(self.handle, self.fd, Part("char", first, MAX_CHARS[view])))
        # in a thread: other pages go on meanwhile
        return await asyncio.to_thread(lay_out, view, found.text, first, descriptor.chars)

    async def _is_cut(self, descriptor: Descriptor) -> bool:
        """Return whether the bytes are a picture of which something is missing."""
        kind, size = picture_type(descriptor), descriptor.bytes
        if kind is None or kind not in IMAGE_TYPES or descriptor.state == "open":
            return False
        head, tail = [
            await self._bytes_from(at, count)
            for at, count in ((0, SIGNATURE_BYTES), (max(0, size - TAIL_BYTES), TAIL_BYTES))
        ]
        seems_cut = is_cut(kind, head, tail, size)
        match kind:
            case "image/png" if size <= (MAX_WALKED_BYTES if seems_cut else MAX_UNPACKED_PNG_BYTES):
                return not await asyncio.to_thread(is_whole_png, await self._whole(size))
            case "image/jpeg" if seems_cut:
                if size > MAX_WALKED_BYTES:
                    return False  # its end may be anywhere
                return not await asyncio.to_thread(is_whole_jpeg, await self._whole(size))
        return seems_cut

    async def _whole(self, size: int) -> bytes:
        pieces = [await self._bytes_from(at, PIECE_BYTES) for at in range(0, size, PIECE_BYTES)]
        return b"".join(pieces)

    async def _bytes_from(self, at: int, count: int) -> bytes:
        return (await self.store.run(read_bytes(self.handle, self.fd, at, count)))[1]

    async def _bytes(self, position: Position | None, side: Side) -> ContentPart:
        if position is not None and position.unit != "offset":
            raise InvalidArgument(position.unit, "bytes have offsets, not pages, lines or characters")
        at = position.first if position else 0
        first = max(0, at // BLOCK_BYTES - {"after": 0, "around": 1, "before": HEX_BLOCKS - 1}[side])
        length = HEX_BLOCKS * BLOCK_BYTES
        info, data = await self.store.run(read_bytes(self.handle, self.fd, first * BLOCK_BYTES, length))
        shown = HexPart(offset=first * BLOCK_BYTES, at=at, hex=data.hex())
        return ContentPart(descriptor=info.descriptor, position=position, bytes=shown)

    async def reading(self, descriptor: Descriptor) -> Reading:
        """Return what the agent of the process has read. Raises `NotFound`, `DamagedRecord`."""
        return await self.store.run(reading(self.handle, descriptor))

    async def step(self, query: SearchQuery, limit: int = MAX_HITS) -> SearchStep:
        """Return the hits of one step of a search. Raises `InvalidArgument`, `NotText`."""
        found = search_step(
            self.handle,
            self.fd,
            query.pattern,
            query.start,
            context=query.context,
            max_matches=limit,
            ignore_case=not query.case,
        )
        return await self.store.run(found)

    async def _others(self) -> tuple[str, ...]:
        names = await self.store.run(descriptor_names(self.handle.keys))
        return tuple(name for name in names if name != self.fd)

    async def count(self, query: SearchQuery, turn: asyncio.Semaphore, within_s: float) -> LineCount:
        """Return how many lines match in all of the text, if this takes no longer than `within_s`, the wait
        for a turn included. Raises `InvalidArgument`, `NotText`."""
        matcher = Pattern(query.pattern, ignore_case=not query.case)
        d = await self.descriptor()
        if d.bytes > MAX_LONG_LINES_BYTES and d.bytes > d.lines * LONG_LINE_BYTES:
            return LineCount(problem="not counted: its lines are too long")
        counting = print_matches(self.handle, self.fd, None, matcher, None, lambda _: None)
        try:
            async with asyncio.timeout(within_s), turn:
                return LineCount(lines=(await self.store.run(counting)).matches)
        except TimeoutError:
            return LineCount(problem=f"not counted: that takes longer than {within_s:g} s")

    async def _first_hits(
        self, query: SearchQuery, descriptor: Descriptor, turn: asyncio.Semaphore | None
    ) -> Search:
        """Return the first hits, with the count of all lines if there is a turn to count."""
        found = Search.of(query)
        if descriptor.kind == "bytes":
            return msgspec.structs.replace(found, problem="these are bytes; only text can be searched")
        try:
            step = await self.step(query)
            counted = await self.count(query, turn, COUNT_IN_PAGE_S) if turn else None
        except InvalidArgument as error:
            return msgspec.structs.replace(found, problem=str(error))
        return msgspec.structs.replace(found, **msgspec.structs.asdict(step), counted=counted)


def _one(window: PageWindow) -> tuple[PageText, ...]:
    return tuple(page for page in window.pages if page.page == window.page)


ROLES = ("output", "stderr")


def _siblings(facts: DescriptorFacts) -> tuple[str | None, tuple[Sibling, ...]]:
    """Return what a content is of the pipeline that writes it, and the pipeline's other streams."""
    producer = facts.producer
    own = f"fd:{facts.content.rpartition('/')[2]}"
    if producer is None or producer.kind != "pipeline" or own not in producer.outputs:
        return None, ()
    roles = [*ROLES, *["tee"] * len(producer.outputs)]
    named = dict(zip(producer.outputs, roles, strict=False))
    of = producer.parent or producer.id
    return named[own], tuple(Sibling(role=role, process=of, fd=fd) for fd, role in named.items() if fd != own)


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


def _made_by(entries: Iterable[ConversationEntry], fd: str) -> JournalCall | None:
    """Return the first call whose result was stored as this descriptor."""
    for each in entries:
        if any(stored.fd == fd for stored in each.facts.stored):
            return JournalCall(tool=each.tool, position=each.position)
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
