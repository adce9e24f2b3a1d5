"""The rows of a diff for a page, from the pieces of a unified diff as they are made. Pure."""

from __future__ import annotations

import codecs
import re
from typing import Literal, NamedTuple

from fdstore.records import Record
from fdstore.web.descriptor_rows import Segment, segments_of

RowKind = Literal["hunk", "same", "removed", "added", "no newline"]

MAX_LINE_CHARS = 2_000
"""Characters of one line that are shown."""

_HEADING_LINES = 2
_HUNK = re.compile(r"@@ -([0-9]+)(?:,([0-9]+))? \+([0-9]+)(?:,([0-9]+))? @@")
_KINDS: dict[str, RowKind] = {" ": "same", "-": "removed", "+": "added", "\\": "no newline"}


class DiffRow(Record, frozen=True, kw_only=True):
    """One row: a line with its numbers in the old and the new text (None: it is not in that one), the heading
    of a hunk, or that the line before has no LF. `left_out` counts the characters of a long line that are not
    in `text`."""

    kind: RowKind
    old: int | None = None
    new: int | None = None
    text: str = ""
    left_out: int = 0

    @property
    def segments(self) -> list[Segment]:
        """The text with what a screen would hide made visible."""
        return list(segments_of(self.text))


class _Hunk(NamedTuple):
    old: int
    new: int


class DiffRows:
    r"""Collects the rows of a unified diff whose pieces may begin and end anywhere.

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
