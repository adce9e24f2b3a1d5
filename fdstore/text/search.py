"""Find the matching lines of a stream of text of any size.

    bytes -> Scan -> whole lines, in blocks -> Pattern
               |
               +-> LineReaders, called in order with lines that do not match and with hits
                     hits.HitCollector    the first hits, for a SearchResult: bounded
                     grep.GrepPrinter     every hit, exactly, as `grep -n` prints it: streamed

`Scan` buffers only the incomplete last line; a text that is one line of 100 MB is buffered whole, because
RE2 needs a whole line. It counts to the end of the text even when all readers are full: then blocks are only
counted, which is several times faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from fdstore.errors import InvalidArgument
from fdstore.text.pattern import Data, HitCount, LineMatch, Pattern

MAX_CONTEXT = 100
MAX_MATCHES = 10_000

BLOCK_BYTES = 1_000_000
"""The best size of the pieces for `Scan.feed`."""


class Matcher(Protocol):
    """Decides which lines match: a `Pattern`, or its `Inverted`."""

    def next(self, data: Data, start: int, end: int) -> LineMatch | None:
        """Return the first matching line of `data[start:end]`, which must be whole lines with their LFs."""

    def count(self, data: Data, start: int, end: int, hits: HitCount | None = None) -> tuple[int, int]:
        """Return the number of lines in `data[start:end]`, and of those that match; add the matches in these
        to `hits`."""

    def count_hits(self, data: Data, line: LineMatch, hits: HitCount) -> None:
        """Add the matches in a matching line to `hits`."""


class Inverted:
    """Matches the lines that a pattern does not match, each with an empty match at its start.

    >>> Inverted(Pattern("o")).next(b"one\\nsix\\n", 0, 8)
    LineMatch(line_start=4, line_end=7, start=4, end=4)
    """

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern

    def next(self, data: Data, start: int, end: int) -> LineMatch | None:
        # line by line: the next match may be far away, and each call would search for it again
        while start < end:
            line_end = data.find(b"\n", start)
            if self._pattern.next(data, start, line_end + 1) is None:
                return LineMatch(start, line_end, start, start)
            start = line_end + 1
        return None

    def count(self, data: Data, start: int, end: int, hits: HitCount | None = None) -> tuple[int, int]:
        lines, matches = self._pattern.count(data, start, end)
        if hits is not None:
            hits.hits += lines - matches
        return lines, lines - matches

    def count_hits(self, data: Data, line: LineMatch, hits: HitCount) -> None:
        hits.hits += 1


class LineReader(Protocol):
    """Receives the lines of a scan. `data` is valid only during the call."""

    @property
    def full(self) -> bool:
        """Return whether the reader needs no more lines."""

    def passed(self, data: Data, start: int, end: int, line: int) -> None:
        """Handle `data[start:end]`: whole lines without a match; the first has number `line`."""

    def hit(self, data: Data, found: LineMatch, line: int) -> None:
        """Handle a match in line number `line`."""


class Scan:
    """Finds the matching lines of a text that is fed in pieces of any size. Lines are numbered from
    `first_line`, which may be set before the first piece. With `hits` the matches in them are counted too.

    >>> scan = Scan(Pattern("o"), [])
    >>> for piece in (b"one\\ntw", b"o\\nsix"):
    ...     scan.feed(piece)
    >>> scan.finish()
    >>> scan.matches, scan.lines
    (2, 3)
    """

    def __init__(self, pattern: Matcher, readers: Sequence[LineReader], hits: HitCount | None = None) -> None:
        self.matches = 0
        self.lines = 0
        self.first_line = 1
        self.hits = hits
        self._pattern = pattern
        self._readers = readers
        self._pending = bytearray()

    def feed(self, data: bytes) -> None:
        """Scan the next bytes."""
        start = 0
        if self._pending:
            start = data.find(b"\n") + 1
            self._pending += data[: start or None]
            if not start:
                return
            line, self._pending = self._pending, bytearray()
            self._search(line, 0, len(line))
        end = data.rfind(b"\n") + 1
        if end > start:
            self._search(data, start, end)
        self._pending += data[max(start, end) :]

    def finish(self) -> None:
        """End the text: scan a last line without LF."""
        if self._pending:
            self._pending += b"\n"
            line, self._pending = self._pending, bytearray()
            self._search(line, 0, len(line))

    def _search(self, data: Data, start: int, end: int) -> None:
        while start < end and not all(reader.full for reader in self._readers):
            found = self._pattern.next(data, start, end)
            here = found.line_start if found else end
            if here > start:
                for reader in self._readers:
                    reader.passed(data, start, here, self.first_line + self.lines)
                self.lines += data.count(b"\n", start, here)
            if found is None:
                return
            for reader in self._readers:
                reader.hit(data, found, self.first_line + self.lines)
            if self.hits is not None:
                self._pattern.count_hits(data, found, self.hits)
            self.matches += 1
            self.lines += 1
            start = found.line_end + 1
        if start < end:
            lines, matches = self._pattern.count(data, start, end, self.hits)
            self.lines += lines
            self.matches += matches


def near(
    data: Data, start: int, end: int, line: int, is_after_hit: Callable[[], bool], context: int
) -> Iterator[tuple[int, int, int]]:
    """Yield those of whole lines without a hit that are near one: from the first on while `is_after_hit()`,
    and the last `context`, for the hit that may follow. Each is the offsets of the line and of its LF, and
    its number."""
    while start < end and is_after_hit():
        line_end = data.find(b"\n", start)
        yield start, line_end, line
        start, line = line_end + 1, line + 1
    first = end
    for _ in range(context):
        if first <= start:
            break
        first = max(data.rfind(b"\n", start, first - 1) + 1, start)
    line += data.count(b"\n", start, first)
    while first < end:
        line_end = data.find(b"\n", first)
        yield first, line_end, line
        first, line = line_end + 1, line + 1


def search_limits(context: object, max_matches: object) -> tuple[int, int]:
    """Return valid `context` and `max_matches`. Raises `InvalidArgument`."""
    return _between("context", context, 0, MAX_CONTEXT), _between("max_matches", max_matches, 1, MAX_MATCHES)


def _between(name: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidArgument(name, f"a whole number from {least} to {most} is needed")
    return value
