r"""Find the pieces of a match that a page, a preview or a window of a search has cut. Pure.

A pattern does not find the second half of what it matches. So the matches in whole texts are learned first,
and a line is then searched for what is left of one: its end where the line begins, its beginning where the
line ends, and its middle as all of the line. A line begins and ends also at a quotation mark, at an escaped
line break, at the number of a line that was found, and at the dots that say that something was left out.

    fdstore:  token=sk-4f9a77be     the whole text
    token=sk-4f                     ends with the beginning
    9a77be                          begins with the end
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fdstore.errors import InvalidArgument

SHORTEST = 4
"""The characters of the shortest piece that is found; of the middle of a match `SHORTEST_MIDDLE`."""

SHORTEST_MIDDLE = 12

MAX_CHARS = 8_000_000
"""The characters of all matches that are learned."""

MAX_CANDIDATES = 1000
"""The places in the matches that are compared with one end of a line."""

_SEGMENT = re.compile(r'(?:\A\d+[:-])|\.\.\.|\u2026|\\n|["<>]')
_HASHES = 1 << 22


class CutMatches:
    """The matches of whole texts, and the pieces of them in other texts.

    >>> cut = CutMatches()
    >>> cut.learn("sk-4f9a77be")
    >>> list(cut.pieces("12:9a77be and more token=sk-4f"))
    [(3, 9), (25, 30)]
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._chars = 0
        self._ends: _Ends | None = None
        self._begins: _Ends | None = None

    def __bool__(self) -> bool:
        return bool(self._known)

    def learn(self, match: str) -> None:
        """Remember a match. Raises `InvalidArgument` if there are too many."""
        if len(match) <= SHORTEST or match in self._known:
            return
        self._chars += len(match)
        if self._chars > MAX_CHARS:
            problem = f"what it matches has more than {MAX_CHARS} characters in the texts of this run"
            raise InvalidArgument("redact", f"{problem}; match less of each line")
        self._known.add(match)
        self._ends = self._begins = None

    def pieces(self, line: str) -> Iterator[tuple[int, int]]:
        """Yield where a line has pieces of matches, as offsets."""
        if not self._known:
            return
        if self._ends is None or self._begins is None:
            self._ends = _Ends("\n".join(["", *self._known, ""]))
            self._begins = _Ends("\n".join(["", *(match[::-1] for match in self._known), ""]))
        start = 0
        for start, end in _segments(line):
            segment = line[start:end]
            if length := self._ends.longest(segment):
                yield start, start + length
            if length := self._begins.longest(segment[::-1]):
                yield end - length, end


def _segments(line: str) -> Iterator[tuple[int, int]]:
    start = 0
    for mark in _SEGMENT.finditer(line):
        if mark.start() - start >= SHORTEST:
            yield start, mark.start()
        start = mark.end()
    if len(line) - start >= SHORTEST:
        yield start, len(line)


class _Ends:
    """Finds ends of the lines of a text at the beginning of other texts."""

    def __init__(self, lines: str) -> None:
        self._lines = lines
        self._hashes = bytearray(_HASHES)
        """Which of the first characters of a piece occur, by their hash."""
        for at in range(len(lines) - SHORTEST + 1):
            self._hashes[hash(lines[at : at + SHORTEST]) % _HASHES] = 1

    def longest(self, text: str) -> int:
        """Return the length of the longest beginning of a text that is the end of a line; all of a text may
        be the middle of one."""
        first = text[:SHORTEST]
        if not self._hashes[hash(first) % _HASHES]:
            return 0
        found, at = 0, -1
        for _ in range(MAX_CANDIDATES):
            at = self._lines.find(first, at + 1)
            if at < 0:
                break
            length = self._lines.index("\n", at) - at
            if text.startswith(self._lines[at : at + length]):
                found = max(found, length)
            elif len(text) >= SHORTEST_MIDDLE and self._lines.startswith(text, at):
                return len(text)
        return found
