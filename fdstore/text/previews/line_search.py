"""Find the lines of a text that contain some words, in milliseconds for megabytes.

A `LineSpan` is a run of whole lines in UTF-8 with the numbers of its first and last one. RE2 finds the words
in the bytes, and only lines that contain one are decoded: a loop over all lines would take 30 times as long.
Where hits are dense, the middle of a span is left out: so the time has a bound, and `MatchingLines` says
which lines were searched.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import re2

MAX_HITS = 1000
"""After this many hits only the end of a span is searched."""

END_BYTES = 16_000
"""The bytes at the end of a span with more hits that are searched."""

_FOLLOWING_BYTES = 20_000


class LineSpan(NamedTuple):
    """Whole lines of a text, those with the numbers `first` to `last`."""

    first: int
    last: int
    data: bytes


class FoundLine(NamedTuple):
    """A line of a span, without LF; `end` is where the next one begins in its bytes."""

    number: int
    text: str
    span: LineSpan
    end: int

    def following(self, count: int) -> list[str]:
        """Return at most `count` of the lines after this one, as far as they are in the next 20 kB."""
        data, stop = self.span.data, self.end
        limit = min(self.end + _FOLLOWING_BYTES, len(data))
        for _ in range(count):
            stop = data.find(b"\n", stop, limit) + 1
            if not stop:
                stop = limit
                break
        # the end may be cut inside a character
        return data[self.end : stop].decode("utf-8", "replace").removesuffix("\n").split("\n")

    def following_until(self, end: Any) -> list[str]:
        """Return the lines after this one up to that in which `end` begins to match, the last one."""
        data = self.span.data
        found = end.search(data, self.end)
        stop = -1 if found is None else data.find(b"\n", found.start())
        stop = len(data) if stop < 0 else stop
        return data[self.end : stop].decode("utf-8", "replace").removesuffix("\n").split("\n")


@dataclass(frozen=True)
class MatchingLines:
    """Lines in order, and the ranges of lines that were searched."""

    lines: list[FoundLine]
    searched: list[tuple[int, int]]

    def range_in(self, total_lines: int) -> str:
        """Return the lines that were searched for display: "all" if they are all lines of the text."""
        ranges: list[tuple[int, int]] = []
        for first, last in self.searched:
            if ranges and ranges[-1][1] + 1 == first:
                first = ranges.pop()[0]
            ranges.append((first, last))
        if sum(last - first + 1 for first, last in ranges) >= total_lines:
            return "all"
        return f"lines {' and '.join(f'{first}-{last}' for first, last in ranges)}"


def compile_words(pattern: bytes) -> Any:
    """Compile a pattern for `find_lines`; letters match in either case only where it says so."""
    return re2.compile(pattern, bytes_options())


def bytes_options() -> Any:
    """Return the options of RE2 to find what is in bytes."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes as they are, which is faster
    options.never_capture = True
    return options


def find_lines(spans: Sequence[LineSpan], words: Any) -> MatchingLines:
    """Return the lines in which `words` match."""
    lines: list[FoundLine] = []
    searched: list[tuple[int, int]] = []
    for span in spans:
        if span.data:
            _find_in(span, words, lines, searched)
    return MatchingLines(lines, searched)


def _find_in(span: LineSpan, words: Any, lines: list[FoundLine], searched: list[tuple[int, int]]) -> None:
    data = span.data
    number, end = span.first, 0  # of the line after the last one that was found
    for hits, match in enumerate(words.finditer(data), 1):
        if hits > MAX_HITS:
            break
        if match.start() < end:
            continue  # another hit in the same line
        line = _line_at(span, match.start(), number, end)
        lines.append(line)
        number, end = line.number + 1, line.end
    else:
        searched.append((span.first, span.last))
        return
    searched.append((span.first, number - 1))
    line_end = data.find(b"\n", max(0, len(data) - END_BYTES))
    start = max(end, line_end + 1)
    if line_end < 0 or start >= len(data):
        return
    number += data.count(b"\n", end, start)
    found: deque[FoundLine] = deque(maxlen=MAX_HITS)
    first, end = number, start
    for match in words.finditer(data, start):
        if match.start() >= end:
            if len(found) == MAX_HITS:
                first = found[0].number + 1
            line = _line_at(span, match.start(), number, end)
            found.append(line)
            number, end = line.number + 1, line.end
    lines += found
    searched.append((first, span.last))


def line_of(data: bytes, at: int) -> bytes:
    """Return the line around a position."""
    stop = data.find(b"\n", at)
    return data[data.rfind(b"\n", 0, at) + 1 : len(data) if stop < 0 else stop]


def _line_at(span: LineSpan, at: int, number: int, since: int) -> FoundLine:
    """Return the line around a position; the line `number` begins at `since`, before it."""
    data = span.data
    start = data.rfind(b"\n", since, at) + 1 or since
    stop = data.find(b"\n", at)
    stop = len(data) if stop < 0 else stop
    number += data.count(b"\n", since, start)
    return FoundLine(number, data[start:stop].decode("utf-8", "replace"), span, min(stop + 1, len(data)))
