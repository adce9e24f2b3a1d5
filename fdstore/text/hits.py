"""Collect the first hits of a search and the lines around them, in bounded memory.

Three bounds: `max_matches` hits; `KEPT_LINE_CHARS` of a line, around the match, with the number of missing
characters in `Hit.left_out`; `KEPT_CHARS` of all lines together, after which no further hit is kept and
`shown` is smaller than `max_matches`.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from msgspec.structs import replace

from fdstore.model.records import ContextLine, Hit
from fdstore.text.pattern import Data, LineMatch
from fdstore.text.search import near

KEPT_LINE_CHARS = 2000
"""Characters kept of a longer line: a third before the start of the match, two thirds after it."""

KEPT_CHARS = 8_000_000
"""Approximate number of characters kept of all hits and context lines together."""

REACH_BYTES = 4 * KEPT_LINE_CHARS
"""Bytes that hold at least `KEPT_LINE_CHARS` characters."""

_CONTINUATION = bytes(range(0x80, 0xC0))
_COUNTED_BYTES = 1_000_000


class Excerpt(NamedTuple):
    """The kept part of a line, the 1-based column of the match in it, and the number of characters left out
    before and after it."""

    text: str
    column: int
    left_out: tuple[int, int]


class _Draft(NamedTuple):
    """A hit, and the lines after it so far."""

    hit: Hit
    after: list[ContextLine]


class HitCollector:
    """Collects the first hits and the lines around them. `next_char` is the number of the next character; set
    it first if the scanned text does not begin at character 1."""

    def __init__(self, max_matches: int, context: int) -> None:
        self.next_char = 1
        self._max_matches = max_matches
        self._context = context
        self._kept_chars = 0
        self._kept_line = 0
        self._drafts: list[_Draft] = []
        self._unfinished: list[_Draft] = []
        self._before: deque[ContextLine] = deque(maxlen=context)

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The hits so far."""
        return tuple(replace(hit, after=tuple(after)) if after else hit for hit, after in self._drafts)

    @property
    def full(self) -> bool:
        return self._has_all_hits and not self._unfinished

    @property
    def _has_all_hits(self) -> bool:
        return len(self._drafts) >= self._max_matches or self._kept_chars >= KEPT_CHARS

    def passed(self, data: Data, start: int, end: int, line: int) -> None:
        if self._context:
            for found in near(data, start, end, line, lambda: bool(self._unfinished), self._context):
                self._take_context(data, *found)
        if not self._has_all_hits:
            self.next_char += count_chars(data, start, end)

    def hit(self, data: Data, found: LineMatch, line: int) -> None:
        start, end = found.line_start, found.line_end
        is_kept = not self._has_all_hits
        before = tuple(self._before)
        if self._context:
            self._take_context(data, start, end, line)
        if not is_kept:
            return
        part = excerpt(data, found)
        first = self.next_char + part.left_out[0] + part.column - 1
        last = first + count_chars(data, found.start, found.end) - 1
        hit = Hit(
            line=line,
            text=part.text,
            chars=f"{first}-{last}" if last >= first else "0-0",
            column=part.column,
            line_start=self.next_char,
            left_out=part.left_out,
            before=before,
        )
        draft = _Draft(hit, [])
        self._drafts.append(draft)
        if self._context:
            self._unfinished.append(draft)
        for line_before in before:
            self._keep(line_before.line, line_before.text)
        self._keep(line, part.text)
        self.next_char += part.left_out[0] + len(part.text) + part.left_out[1] + 1

    def _take_context(self, data: Data, start: int, end: int, number: int) -> None:
        line = context_line(data, start, end, number)
        self._before.append(line)
        if not self._unfinished:
            return
        for draft in self._unfinished:
            draft.after.append(line)
        self._keep(number, line.text)
        # each has got one more line, so only the oldest can be complete
        if len(self._unfinished[0].after) == self._context:
            del self._unfinished[0]

    def _keep(self, line: int, text: str) -> None:
        # lines arrive in order; count a line near several hits once
        if line > self._kept_line:
            self._kept_line = line
            self._kept_chars += len(text)


def excerpt(data: Data, found: LineMatch) -> Excerpt:
    """Return the kept part of a matching line: all of it, or the part around the match."""
    start, end, at = found.line_start, found.line_end, found.start
    while at > start and data[at] in _CONTINUATION:
        at -= 1  # \C and \B match between the bytes of a character too
    before = _decoded(data, max(start, at - REACH_BYTES), at)
    after = _decoded(data, at, min(end, at + REACH_BYTES))
    led = min(len(before), max(KEPT_LINE_CHARS // 3, KEPT_LINE_CHARS - len(after)))
    text = before[len(before) - led :] + after[: KEPT_LINE_CHARS - led]
    left_out = count_chars(data, start, at) - led, count_chars(data, at, end) - (len(text) - led)
    return Excerpt(text, led + 1, left_out)


def context_line(data: Data, start: int, end: int, number: int) -> ContextLine:
    """Return the kept part of a line near a hit: its beginning."""
    text = _decoded(data, start, min(end, start + REACH_BYTES))[:KEPT_LINE_CHARS]
    return ContextLine(line=number, text=text, left_out=count_chars(data, start, end) - len(text))


def count_chars(data: Data, start: int, end: int) -> int:
    """Count the characters of `data[start:end]` by their first bytes, a block at a time."""
    chars = 0
    for a in range(start, end, _COUNTED_BYTES):
        piece = data[a : min(end, a + _COUNTED_BYTES)]
        chars += len(piece) if piece.isascii() else len(piece.translate(None, _CONTINUATION))
    return chars


def _decoded(data: Data, start: int, end: int) -> str:
    # both ends may be inside a character: drop partial characters
    return data[start:end].decode("utf-8", "ignore")
