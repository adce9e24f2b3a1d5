"""The page of a descriptor, with the URLs and rows that its template needs.

The fields are the data of the JSON twin; properties and methods are for the template alone.
"""

from __future__ import annotations

from typing import Any

import msgspec
from markupsafe import Markup, escape

from fdstore.elements.kinds import Interval
from fdstore.inspector.reading.other_fields import other_fields
from fdstore.inspector.web.descriptor_query import Position, ReadableView, SearchQuery
from fdstore.inspector.web.descriptor_rows import (
    BLOCK_BYTES,
    HexRow,
    Segment,
    TextRow,
    hex_rows,
    paint,
    rows_of,
    segments_of,
)
from fdstore.inspector.web.links import descriptor_url
from fdstore.inspector.web.readable_text import ReadableText, view_of
from fdstore.model.records import ContextLine, Descriptor, Hit, ProcessRecord, Record
from fdstore.store.contents.page_windows import PageText
from fdstore.store.views.usage import Holder
from fdstore.text.media_types import IMAGE_TYPES, PDF_TYPE

HEX_BLOCKS = 4
"""Blocks of a hex dump that one request returns."""

AROUND_CHARS = 160
"""Characters shown after a match in the list of hits; before it, a quarter."""


class TextPart(Record, frozen=True, kw_only=True):
    """The part of a text that is shown: whole pages and their places. `page`, `line` and `char` are the
    position that was asked for."""

    page: int
    line: int
    char: int
    pages: tuple[PageText, ...]


class HexBlock(Record, frozen=True):
    """A block of a hex dump: what a page is of a text."""

    page: int
    rows: list[HexRow]


class HexPart(Record, frozen=True, kw_only=True):
    """The bytes that are shown, from `offset` on, in hexadecimal. `at` is the offset that was asked for."""

    offset: int
    at: int
    hex: str

    @property
    def blocks(self) -> list[HexBlock]:
        data = bytes.fromhex(self.hex)
        return [
            HexBlock((self.offset + i) // BLOCK_BYTES, hex_rows(data[i : i + BLOCK_BYTES], self.offset + i))
            for i in range(0, max(len(data), 1), BLOCK_BYTES)
        ]


class LineCount(Record, frozen=True, kw_only=True):
    """How many lines of a whole text match; None with the `problem` that they were not counted."""

    lines: int | None = None
    problem: str = ""


class Search(SearchQuery, frozen=True, kw_only=True):
    """A search and the hits of its first step; `problem` says why there is none. `counted`: the lines that
    match in all, if that was asked for."""

    hits: tuple[Hit, ...] = ()
    next_char: int | None = None
    searched: int = 0
    total: int = 0
    counted: LineCount | None = None
    problem: str | None = None

    @classmethod
    def of(cls, query: SearchQuery) -> Search:
        """Return a search that has not begun."""
        return cls(**msgspec.structs.asdict(query))


class JournalCall(Record, frozen=True, kw_only=True):
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
    made_by: JournalCall | None = None
    examined: int = 0
    length: int = 0


class Sibling(Record, frozen=True, kw_only=True):
    """Another stream of the pipeline that writes this one: "output", "stderr" or "tee"."""

    role: str
    process: str
    fd: str

    @property
    def url(self) -> str:
        return descriptor_url(self.process, self.fd)


class Look(Record, frozen=True, kw_only=True):
    """The look of a part of a descriptor: all that its rows and their links need. `position` is marked."""

    process: str
    fd: str
    descriptor: Descriptor
    position: Position | None
    wrap: bool
    raw: bool
    hex: bool
    colours: bool = True
    search: Search | None = None

    # --- URLs

    def url(self, part: str = "", **query: object) -> str:
        return descriptor_url(self.process, self.fd, part, **query)

    def here(self, **changes: object) -> str:
        """Return the URL of this page with another position, search or look."""
        state = self._look | self._search
        if not {"page", "lines", "chars", "offset"} & changes.keys():
            state |= self._position
        return self.url(**(state | changes))

    @property
    def _look(self) -> dict[str, Any]:
        chosen: dict[str, Any] = {} if self.wrap else {"wrap": "0"}
        if self.raw:
            chosen["raw"] = "1"
        if not self.colours:
            chosen["colours"] = "0"
        if self.hex and self.descriptor.kind == "text":
            chosen["view"] = "hex"
        return chosen

    @property
    def _search(self) -> dict[str, Any]:
        found = self.search
        if found is None:
            return {}
        state: dict[str, Any] = {"q": found.q}
        state |= {name: "1" for name, on in (("re", found.regex), ("case", found.case)) if on}
        return state | ({"context": found.context} if found.context else {})

    @property
    def _position(self) -> dict[str, Any]:
        asked = self.position
        if asked is None:
            return {}
        name = {"page": "page", "line": "lines", "char": "chars", "offset": "offset"}[asked.unit]
        return {name: asked.first if asked.first == asked.last else f"{asked.first}-{asked.last}"}

    def hit_url(self, hit: Hit) -> str:
        """Return the URL that shows a hit in the text."""
        part = {"lines": hit.line} if hit.chars == "0-0" else {"chars": hit.chars}
        return self.url(**(self._look | self._search | part))

    # --- what is shown

    def rows(self, page: PageText) -> list[TextRow]:
        """Return the rows of a page, with what was asked for marked."""
        asked = self.position
        range_ = (asked.first, asked.last) if asked else None
        return rows_of(
            page.text,
            page.first_line,
            page.first_char,
            continued=page.continued,
            lines=range_ if asked and asked.unit == "line" else None,
            chars=range_ if asked and asked.unit == "char" else None,
            raw=self.raw,
            colours=self.colours,
        )

    def hit_segments(self, hit: Hit) -> list[Segment]:
        """Return the text of a hit around its match, which is marked."""
        start = hit.column - 1
        first, _, last = hit.chars.partition("-")
        end = start + (0 if hit.chars == "0-0" else int(last) - int(first) + 1)
        begin = max(0, start - AROUND_CHARS // 4)
        is_cut = begin > 0 or hit.left_out[0] > 0
        before = hit.text[begin:start]
        if not is_cut:
            before = before.lstrip()
        match = hit.text[start : min(end, start + AROUND_CHARS)]
        text, mark = before + match + hit.text[end : end + AROUND_CHARS], len(before)
        found, _ = paint(text, mark=(mark, mark + len(match)), colours=self.colours)
        return [Segment("gap", "…"), *found] if is_cut else found

    def near_segments(self, line: ContextLine) -> list[Segment]:
        """Return the text of a line near a hit."""
        return paint(line.text[: 2 * AROUND_CHARS], colours=self.colours)[0]


def picture_type(descriptor: Descriptor) -> str | None:
    """Return the media type of bytes that are a picture or a PDF by it; else None."""
    found = descriptor.media_type.partition(";")[0]
    return found if descriptor.kind == "bytes" and found in (*IMAGE_TYPES, PDF_TYPE) else None


class DescriptorPage(Look, frozen=True, kw_only=True):
    """A descriptor of a process, and the part of it that is shown: `text` or `bytes`. `role` is what it is
    of a pipeline; `siblings` are the others. `others` are descriptors that a text can be compared with;
    `is_cut`: the end of a picture is missing. `readable` is a part that is laid out, shown instead of
    `text`. `where` is the object of a cold content."""

    content: str
    producer: ProcessRecord | None
    holder_count: int
    holders: tuple[Holder, ...]
    where: str = ""
    role: str | None
    siblings: tuple[Sibling, ...]
    text: TextPart | None = None
    bytes: HexPart | None = None
    readable: ReadableText | None = None
    reading: Reading | None = None
    others: tuple[str, ...] = ()
    is_cut: bool = False
    now_s: float

    @property
    def picture(self) -> str | None:
        """The media type of bytes that are shown as a picture, or opened as a PDF."""
        return picture_type(self.descriptor)

    @property
    def has_colours(self) -> bool:
        """True if what is shown has escapes, so that there is a choice to see them."""
        return self.text is not None and any("\x1b[" in page.text for page in self.text.pages)

    @property
    def offered(self) -> ReadableView | None:
        """How the text can be laid out for reading."""
        pages = self.text.pages if self.text else ()
        beginning = pages[0].text if pages and pages[0].first_char == 1 else ""
        return view_of(self.descriptor, self.fd.partition(":")[2], beginning)

    @property
    def laid_out(self) -> list[Segment]:
        """JSON that is laid out, with what a screen would hide made visible."""
        lines = (self.readable.text or "").split("\n") if self.readable else []
        return [each for line in lines for each in (*segments_of(line), Segment("", "\n"))]

    @property
    def came(self) -> str:
        """Return how the process received a content that another one created."""
        return "Handed to" if self.descriptor.producer.startswith(f"{self.process}.") else "Shared with"

    @property
    def other_fields(self) -> list[tuple[str, str]]:
        return other_fields(self.descriptor)

    # --- URLs

    @property
    def kept(self) -> list[tuple[str, Markup]]:
        """The fields of a form that keep how the page looks, and its name."""
        kind, _, key = self.fd.partition(":")
        named = {} if kind == "fd" else {"key": key}
        return [(name, escape(value)) for name, value in (named | self._look).items()]

    @property
    def kept_search(self) -> list[tuple[str, Markup]]:
        return [(name, escape(value)) for name, value in self._search.items()]

    def _at(self, number: int) -> str:
        """Return the URL of a page, or of a block of bytes, by its number from 0."""
        if self.bytes is not None:
            return self.here(offset=number * BLOCK_BYTES or None)
        return self.here(page=number + 1)

    @property
    def _ends(self) -> tuple[int, int, int]:
        """The number of what is shown first, of what follows it, and of the last one, from 0."""
        if self.bytes is not None:
            shown = self.bytes.offset // BLOCK_BYTES
            return shown, shown + HEX_BLOCKS, max(0, self.descriptor.bytes - 1) // BLOCK_BYTES
        shown = self.text.page - 1 if self.text else 0
        return shown, shown + 1, self.descriptor.pages - 1

    @property
    def urls_before(self) -> tuple[str, ...]:
        """The URLs of the first page and of the previous one; empty on the first."""
        shown, following, _ = self._ends
        return (self._at(0), self._at(max(0, 2 * shown - following))) if shown > 0 else ()

    @property
    def urls_after(self) -> tuple[str, ...]:
        """The URLs of the next page and of the last one; empty on the last."""
        _, following, last = self._ends
        return (self._at(following), self._at(last)) if following <= last else ()

    @property
    def origin_process(self) -> str:
        origin = self.descriptor.origin
        return origin.content.rpartition("/")[0] if origin else ""

    @property
    def origin_url(self) -> str:
        origin = self.descriptor.origin
        chars = None if origin is None or origin.chars == "0-0" else origin.chars
        return descriptor_url(self.origin_process, origin.fd, chars=chars) if origin else ""

    def holder_url(self, holder: Holder) -> str:
        return descriptor_url(holder.process, holder.fd or self.fd)

    # --- for scripts

    @property
    def position_json(self) -> Markup:
        return _attribute(self.position)

    @property
    def descriptor_json(self) -> Markup:
        return _attribute(self.descriptor)


def _attribute(value: object) -> Markup:
    """Return JSON as the value of an attribute: escaped for HTML and otherwise exact."""
    return escape(msgspec.json.encode(value).decode("utf-8"))
