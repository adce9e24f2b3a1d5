"""The sparse line index: locates every line and character, for 0.3 % of the content's size.

There is one hash field for each group of 256 pages, named by the group's first page (`1`, `257`, ...), so its
name follows from a page number and one HGET fetches it. Its value is readable ASCII, a row for each 16 pages:

    13107 1048100~;52,3987 48,3990 0,4000~ ...
    13907 1112004;51,3998 ...
    |     |        |  |                   +- "~": this page does not end in LF
    |     |        |  +- characters in the row's first page
    |     |        +- LFs in it
    |     +- characters before the row ("~" after it: the page before does not end in LF)
    +- LFs before the row

A last row `b1112010 65536 65120` has the bytes before the group, and those of each row but the last; the
first group needs none if it has one row.

A line or a character is located by bisection over groups, over rows and inside a row, and then in the page's
text, which the reader has anyway. A read of one page parses one row: parsing the counts of 256 pages would
take longer than fetching the page. A list of all line starts would take twenty times as much memory and save
nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from fdstore.text.paging import Page, newlines_in

GROUP_PAGES = 256
"""Pages described by one field of the index."""

ROW_PAGES = 16
"""Pages described by one row of a field."""

MID_LINE = "~"
"""Marks a page (or the text before a row) that does not end in LF."""

_MARK = MID_LINE.encode("ascii")
_BYTES_ROW = b"\nb"

_NUMBERS = msgspec.json.Decoder(list[int])
"""The fastest parser of many numbers available here."""

_COMMAS = bytes.maketrans(b" ;", b",,")
_BLANKS = bytes.maketrans(b";", b" ")
_IN_NUMBERS = b"0123456789,"


def group_of(page: int) -> int:
    """Return the first page of the group that contains `page`; it is also the name of the group's field.

    >>> group_of(1), group_of(256), group_of(257)
    (1, 1, 257)
    """
    return (page - 1) // GROUP_PAGES * GROUP_PAGES + 1


class TextPosition(msgspec.Struct, frozen=True):
    """The position at the start of a page: the LFs and characters before it, and whether it begins in the
    middle of a line."""

    page: int
    newlines: int
    chars: int
    mid_line: bool


class IndexRow:
    """One parsed row of a field: the positions between its pages, as running totals."""

    __slots__ = ("chars", "first", "mid_line", "newlines")

    def __init__(self, first: int, value: bytes) -> None:
        # the text before the row has the form of one more page, so running sums over all are positions
        counts = _NUMBERS.decode(b"[" + value.translate(_COMMAS, _MARK) + b"]")
        self.first = first
        self.newlines = list(accumulate(counts[::2]))
        self.chars = list(accumulate(counts[1::2]))
        marks, positions = value.count(_MARK), len(self.chars)
        if 0 < marks < positions:
            # without its numbers a row is its marks and separators; the first separator is in its head
            ends = value.translate(_BLANKS, _IN_NUMBERS)[1:].split(b" ")
            self.mid_line = [*map(bool, ends)]
        else:
            self.mid_line = [marks > 0] * positions

    @property
    def last(self) -> int:
        """The number of the row's last page."""
        return self.first + len(self.mid_line) - 2

    def before(self, page: int) -> TextPosition:
        """Return the position where `page` begins: a page of this row, or the one after it."""
        i = page - self.first
        return TextPosition(page, self.newlines[i], self.chars[i], self.mid_line[i])


class Group:
    """One field of the index. Rows are parsed on demand."""

    __slots__ = ("_before", "_end", "_rows", "_value", "bytes", "first")

    def __init__(self, first: int, value: bytes) -> None:
        self.first = first
        self._value, found, sizes = value.rpartition(_BYTES_ROW)
        if not found:  # one row
            self._value, sizes = value, b"0"
        self.bytes = [*map(int, sizes.split())]
        """The bytes before the group, and those of each row but the last."""
        self._rows: dict[int, IndexRow] = {}
        self._end: TextPosition | None = None
        self._before: tuple[list[int], list[int]] | None = None

    @property
    def value(self) -> bytes:
        """The field itself."""
        sizes = b"" if self.bytes == [0] else _BYTES_ROW + b" ".join(b"%d" % each for each in self.bytes)
        return self._value + sizes

    def _row(self, number: int) -> IndexRow:
        row = self._rows.get(number)
        if row is None:
            # split up to this row only: splitting the whole value would take as long as parsing the row
            line = self._value.split(b"\n", number + 1)[number]
            row = self._rows[number] = IndexRow(self.first + number * ROW_PAGES, line)
        return row

    def _starts(self) -> tuple[list[int], list[int]]:
        """Return the LFs and the characters before each row. Only their beginnings are parsed."""
        if self._before is None:
            heads = [row.partition(b";")[0].partition(b" ") for row in self._value.split(b"\n")]
            self._before = (
                [int(newlines) for newlines, _, _ in heads],
                [int(chars.removesuffix(_MARK)) for _, _, chars in heads],
            )
        return self._before

    @property
    def start(self) -> TextPosition:
        """The position where the group begins."""
        return self._row(0).before(self.first)

    @property
    def end(self) -> TextPosition:
        """The position where the group ends."""
        if self._end is None:
            self._end = self.after(self.last)
        return self._end

    @property
    def last(self) -> int:
        """The number of the group's last page."""
        return self._row(self._value.count(b"\n")).last

    def before(self, page: int) -> TextPosition:
        """Return the position where `page` (of this group) begins."""
        return self._row((page - self.first) // ROW_PAGES).before(page)

    def after(self, page: int) -> TextPosition:
        """Return the position where `page` (of this group) ends and the next one begins."""
        return self._row((page - self.first) // ROW_PAGES).before(page + 1)

    def at(self, page: int) -> tuple[int, int, bool, int]:
        """Return where `page` (of this group) begins (newlines, chars, mid_line as in `TextPosition`), and
        how many lines it touches."""
        i = page - self.first
        row = self._rows.get(i // ROW_PAGES) or self._row(i // ROW_PAGES)
        i %= ROW_PAGES
        newlines, mid_line = row.newlines, row.mid_line
        # a page that does not end in LF touches one line more than it has LFs
        return newlines[i], row.chars[i], mid_line[i], newlines[i + 1] - newlines[i] + mid_line[i + 1]

    def page_of_newline(self, number: int) -> int:
        """Return the page that contains the LF with this number; the group's last page if it is later."""
        row = self._row(max(bisect_left(self._starts()[0], number) - 1, 0))
        return min(row.first + bisect_left(row.newlines, number, lo=1) - 1, row.last)

    def page_of_char(self, number: int) -> int:
        """Return the page that contains the character with this number; the last page if it is later."""
        row = self._row(max(bisect_left(self._starts()[1], number) - 1, 0))
        return min(row.first + bisect_left(row.chars, number, lo=1) - 1, row.last)


class IndexWriter:
    """Builds the index and the totals of a content while its pages are cut.

    >>> writer = IndexWriter()
    >>> writer.add([Page(b"ab\\n", 3), Page(b"cd", 2)])
    >>> writer.fields(), writer.lines, writer.chars
    ({'1': '0 0;1,3 0,2~'}, 2, 5)
    """

    def __init__(self) -> None:
        self.pages = 0
        self.newlines = 0
        self.chars = 0
        self.bytes = 0
        self.ends_line = True
        self._rows: list[str] = []
        self._sizes = [0]
        self._row_start = 0
        self._head = "0 0"
        self._entries: list[str] = []
        self._full: dict[str, str] = {}

    @property
    def lines(self) -> int:
        """The number of lines added so far."""
        return self.newlines + (self.chars > 0 and not self.ends_line)

    def add(self, pages: Sequence[Page]) -> None:
        """Add the next pages."""
        newlines = newlines_in([page.data for page in pages])
        for (data, chars), count in zip(pages, newlines, strict=True):
            if len(self._entries) == ROW_PAGES:
                self._close_row()
            self.ends_line = data.endswith(b"\n")
            self._entries.append(f"{count},{chars}" if self.ends_line else f"{count},{chars}{MID_LINE}")
            self.pages += 1
            self.newlines += count
            self.chars += chars
            self.bytes += len(data)

    def with_last(self, page: Page) -> IndexWriter:
        """Return a copy of the index with `page` as the last page. This one is unchanged, so that `page` can
        be added again when it is longer."""
        whole = self.copied()
        whole._full = {}
        whole.add([page])
        return whole

    def copied(self) -> IndexWriter:
        """Return a copy."""
        copied = IndexWriter()
        copied.pages, copied.newlines, copied.chars = self.pages, self.newlines, self.chars
        copied.bytes, copied.ends_line = self.bytes, self.ends_line
        copied._rows, copied._head, copied._entries = self._rows.copy(), self._head, self._entries.copy()
        copied._sizes, copied._row_start = self._sizes.copy(), self._row_start
        copied._full = self._full.copy()
        return copied

    @classmethod
    def before_last(cls, page: int, size_bytes: int, value: bytes) -> IndexWriter:
        """Restore the index of all pages before the last page, `page`: they have `size_bytes` bytes, and
        `value` is the field of the group that contains `page`."""
        writer = cls()
        group = Group(group_of(page), value)
        start = group.before(page)
        writer.pages, writer.newlines, writer.chars = page - 1, start.newlines, start.chars
        writer.bytes, writer.ends_line = size_bytes, not start.mid_line
        full, part = divmod(page - group_of(page), ROW_PAGES)
        writer._sizes = group.bytes[: full + 1]
        writer._row_start = sum(writer._sizes)
        rows = value.decode("ascii").split("\n")
        writer._rows = rows[:full]
        writer._head, _, entries = rows[full].partition(";")
        writer._entries = entries.split(" ")[:part]
        return writer

    def _close_row(self) -> None:
        self._rows.append(self._row())
        if len(self._rows) == GROUP_PAGES // ROW_PAGES:
            self._full[str(group_of(self.pages))] = "\n".join([*self._rows, *self._bytes_row()])
            self._rows, self._sizes = [], [self.bytes]
        else:
            self._sizes.append(self.bytes - self._row_start)
        self._row_start = self.bytes
        # an empty text is at the start of a line
        mark = MID_LINE if self.chars and not self.ends_line else ""
        self._head = f"{self.newlines} {self.chars}{mark}"
        self._entries = []

    def _row(self) -> str:
        return f"{self._head};{' '.join(self._entries)}"

    def _bytes_row(self) -> list[str]:
        return [] if self._sizes == [0] else ["b" + " ".join(map(str, self._sizes))]

    def full_groups(self) -> dict[str, str]:
        """Return the fields that are final, each once."""
        full, self._full = self._full, {}
        return full

    def fields(self) -> dict[str, str]:
        """Return the fields not returned yet, including the last, incomplete group."""
        fields = self.full_groups()
        if self._entries:
            rows = [*self._rows, self._row(), *self._bytes_row()]
            fields[str(group_of(self.pages))] = "\n".join(rows)
        return fields
