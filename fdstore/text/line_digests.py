"""The lines of a text as digests and positions: 16 bytes each, however long the lines are.

A digest is Python's hash of a string: 64 bits that a text cannot be made for, since each interpreter has a
key of its own. That any two different lines of two texts of a million lines have the same one happens once in
18 million comparisons.
"""

from __future__ import annotations

from array import array
from itertools import accumulate

CHUNK_CHARS = 1 << 20
"""A longer line is digested in chunks of this size, so that it is never held as a whole."""


class LineDigests:
    r"""Digests of the lines of a text that is fed in pieces. Lines end at LF; a last line without one has
    another digest than the same line with it.

    >>> lines = LineDigests()
    >>> lines.feed("one\ntw"); lines.feed("o\none\n"); lines.finish()
    >>> len(lines), lines.digests[0] == lines.digests[2], list(lines.starts)
    (3, True, [0, 4, 8, 12])
    """

    def __init__(self) -> None:
        self.digests = array("q")
        self.starts = array("Q", [0])
        """The character at which each line begins, from 0, and the length of the text."""
        self._open = ""
        self._open_chars = 0
        self._chunks: int | None = None

    def __len__(self) -> int:
        return len(self.digests)

    def feed(self, text: str) -> None:
        """Add the next piece of the text."""
        *ended, rest = text.split("\n")
        if ended:
            self._add_open(ended[0])
            self._end_line(1)
            if len(text) < CHUNK_CHARS:
                whole = ended[1:]
                self.digests.extend(map(hash, whole))
                ends = accumulate((len(line) + 1 for line in whole), initial=self.starts[-1])
                next(ends)
                self.starts.extend(ends)
            else:
                for line in ended[1:]:
                    self._add_open(line)
                    self._end_line(1)
        self._add_open(rest)

    def finish(self) -> None:
        """End the text: its last line may have no LF."""
        if self._open_chars:
            self._end_line(0)
            self.digests[-1] = hash((self.digests[-1], "no LF"))

    def _add_open(self, text: str) -> None:
        self._open += text
        self._open_chars += len(text)
        while len(self._open) > CHUNK_CHARS:
            self._chunks = hash((self._chunks, self._open[:CHUNK_CHARS]))
            self._open = self._open[CHUNK_CHARS:]

    def _end_line(self, newline: int) -> None:
        self.digests.append(hash(self._open) if self._chunks is None else hash((self._chunks, self._open)))
        self.starts.append(self.starts[-1] + self._open_chars + newline)
        self._open, self._open_chars, self._chunks = "", 0, None
