"""The page of what differs between two texts of a process: `/process/triage/diff?a=fd:1&b=fd:2`.

`a` and `b` may be parts: `fd:1#L1-100`.
"""

from __future__ import annotations

import asyncio
import codecs
import re
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from msgspec.structs import replace

from fdstore.errors import TooLarge
from fdstore.inspector.web.changed_words import Span, changed_words
from fdstore.inspector.web.descriptor_rows import Segment, segments_of
from fdstore.inspector.web.links import descriptor_url
from fdstore.inspector.web.page import PageRequest, WebPage
from fdstore.model.records import Comparison, Descriptor, Record
from fdstore.store.clock import redis_now
from fdstore.store.contents.comparing import MAX_CONTEXT, compare
from fdstore.store.contents.descriptors import stat
from fdstore.store.processes.processes import open_child
from fdstore.store.views.process_window import descriptor_names
from fdstore.text.selection import Selector, parse_request

MAX_ROWS = 2_000
"""Lines of a diff on a page."""

MAX_BYTES = 64_000_000
"""The largest text that a page compares whole."""

CONTEXT = 3

RowKind = Literal["hunk", "same", "removed", "added", "no newline"]

MAX_LINE_CHARS = 2_000
"""Characters of one line that are shown."""

_HEADING_LINES = 2
_HUNK = re.compile(r"@@ -([0-9]+)(?:,([0-9]+))? \+([0-9]+)(?:,([0-9]+))? @@")
_KINDS: dict[str, RowKind] = {" ": "same", "-": "removed", "+": "added", "\\": "no newline"}


class DiffPart(NamedTuple):
    """A part of a line; `is_changed`: the other text has something else there."""

    segments: list[Segment]
    is_changed: bool


class DiffRow(Record, frozen=True, kw_only=True):
    """One row: a line with its numbers in the old and the new text (None: it is not in that one), the heading
    of a hunk, or that the line before has no LF. `left_out` counts the characters of a long line that are not
    in `text`. `changed` are the parts of it that differ from the line that took its place, as offsets."""

    kind: RowKind
    old: int | None = None
    new: int | None = None
    text: str = ""
    left_out: int = 0
    changed: tuple[Span, ...] = ()

    @property
    def parts(self) -> list[DiffPart]:
        """The text, with what a screen would hide made visible, in parts that have changed and others."""
        ends = [0, *(at for span in self.changed for at in span), len(self.text)]
        return [
            DiffPart(segments_of(self.text[first:last]), bool(number % 2))
            for number, (first, last) in enumerate(pairwise(ends))
            if first < last
        ]


class _Hunk(NamedTuple):
    old: int
    new: int


class DiffRows:
    r"""The rows of a unified diff, collected from pieces that may begin and end anywhere.

    >>> rows = DiffRows()
    >>> rows.feed(b"--- fd:1\n+++ fd:2\n@@ -7 +7 @@\n-a\n")
    >>> rows.feed(b"+b\n")
    >>> [(row.kind, row.old, row.new, row.text) for row in rows.rows[1:]]
    [('removed', 7, None, 'a'), ('added', None, 7, 'b')]
    """

    def __init__(self) -> None:
        self.rows: list[DiffRow] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""
        self._left_out = 0
        self._headings_left = _HEADING_LINES
        self._next = _Hunk(1, 1)

    def feed(self, piece: bytes) -> None:
        """Add a piece."""
        *ended, rest = self._decoder.decode(piece).split("\n")
        for each in ended:
            self._extend(each)
            self._end()
        self._extend(rest)

    def _extend(self, text: str) -> None:
        room = max(0, MAX_LINE_CHARS + 1 - len(self._line))
        self._line += text[:room]
        self._left_out += max(0, len(text) - room)

    def _end(self) -> None:
        line, left_out = self._line, self._left_out
        self._line, self._left_out = "", 0
        if self._headings_left:
            self._headings_left -= 1
        elif hunk := _HUNK.fullmatch(line):
            # an empty range is named by the line before it
            self._next = _Hunk(int(hunk[1]) + (hunk[2] == "0"), int(hunk[3]) + (hunk[4] == "0"))
            self.rows.append(DiffRow(kind="hunk", text=line))
        else:
            kind = _KINDS[line[0]]
            if kind == "no newline":
                self.rows.append(DiffRow(kind=kind))
                return
            old, new = self._next
            is_old, is_new = kind != "added", kind != "removed"
            self.rows.append(
                DiffRow(
                    kind=kind,
                    old=old if is_old else None,
                    new=new if is_new else None,
                    text=line[1:],
                    left_out=left_out,
                )
            )
            self._next = _Hunk(old + is_old, new + is_new)


def with_changes(rows: Sequence[DiffRow]) -> list[DiffRow]:
    """Return the rows with what differs within lines: in each run of removed lines that as many added ones
    follow, the first with the first, and so on."""
    found = list(rows)
    lines = [number for number, row in enumerate(rows) if row.kind != "no newline"]
    runs = [(kind, list(run)) for kind, run in groupby(lines, lambda number: rows[number].kind)]
    for (kind, olds), (following, news) in pairwise(runs):
        if (kind, following) != ("removed", "added") or len(olds) != len(news):
            continue
        for old, new in zip(olds, news, strict=True):
            of_old, of_new = changed_words(found[old].text, found[new].text)
            found[old] = replace(found[old], changed=tuple(of_old))
            found[new] = replace(found[new], changed=tuple(of_new))
    return found


class Side(Record, frozen=True, kw_only=True):
    """One of the texts: as it was asked for, and its descriptor."""

    asked: str
    descriptor: Descriptor


class Diff(Record, frozen=True, kw_only=True):
    """The differences: their numbers of lines, and the first rows; `is_cut`: there are more."""

    a: Side
    b: Side
    comparison: Comparison
    rows: list[DiffRow]
    is_cut: bool


class DiffPage(Record, frozen=True, kw_only=True):
    """The texts that were asked for, and what differs; None while one is not named. `others` are descriptors
    of the process."""

    process: str
    a: str
    b: str
    context: int
    others: tuple[str, ...]
    diff: Diff | None
    now_s: float

    def url(self, side: Side, line: int | None = None) -> str:
        """Return the URL of a text, or of a line of it."""
        url = descriptor_url(self.process, side.descriptor.fd, lines=line)
        return url if line is None else f"{url}#L{line}"


async def load(request: PageRequest) -> DiffPage:
    """Load what differs between `a` and `b`, with `context` lines around each change. Raises `NotFound`,
    `InvalidArgument`, `NotText`, `TooLarge`, `PageOutOfRange`, `PositionOutOfRange`."""
    store, process = request.store, request.argument("id")
    a, b = request.query("a"), request.query("b")
    context = request.number("context", CONTEXT, most=MAX_CONTEXT)
    handle = await store.run(open_child(store.prefix, process))
    diff = None
    if a and b:
        selectors = parse_request(a), parse_request(b)
        one, other = [
            Side(asked=str(each), descriptor=await store.run(stat(handle, each.fd))) for each in selectors
        ]
        for side, each in zip((one, other), selectors, strict=True):
            _check_size(side, each)
        found = DiffRows()
        async with request.inspector.reading_whole:
            comparison = await store.run(
                compare(handle, *selectors, context=context, write=found.feed, most_lines=MAX_ROWS)
            )
        shown = sum(row.kind in ("removed", "added") for row in found.rows)
        diff = Diff(
            a=one,
            b=other,
            comparison=comparison,
            rows=await asyncio.to_thread(with_changes, found.rows),
            is_cut=shown < comparison.removed + comparison.added,
        )
    return DiffPage(
        process=process,
        a=a,
        b=b,
        context=context,
        others=await store.run(descriptor_names(handle.keys)),
        diff=diff,
        now_s=await store.run(redis_now()),
    )


def _check_size(side: Side, selector: Selector) -> None:
    if selector.part is None and side.descriptor.bytes > MAX_BYTES:
        advice = f"compare parts, such as {side.descriptor.fd}#L1-200000, or use `fdstore diff`"
        raise TooLarge(side.asked, side.descriptor.bytes, MAX_BYTES, advice, "bytes")


PAGES = [WebPage("/process/{id}/diff", "diff.html", load, timeout_s=20.0)]
