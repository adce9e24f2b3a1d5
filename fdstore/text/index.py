"""The sparse line index: where every line and character is, for 0.3 % of the content's size.

One hash field for each group of 256 pages, named by the group's first page (`1`, `257`, ...), so
its name follows from a page number and one HGET finds it. Its value is ASCII that people can read:

    13107 1048100~;52,3987 48,3990 0,4000~ ...
    |     |      |  |  |           |     +- this page does not end in LF
    |     |      |  |  +- characters       +- a page inside one long line
    |     |      |  +- LFs in the group's first page
    |     |      +- the page before the group did not end in LF
    |     +- characters before the group
    +- LFs before the group

A line or a character is found by two bisections, one over groups, one inside a group; the rest is
cutting the page's text, which the reader has anyway. A list of all line starts would cost twenty
times as much memory and save nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import msgspec

from fdstore.text.paging import Page, count_lines

GROUP_PAGES = 256
"""Pages described by one field of the index."""

MID_LINE = "~"
"""Marks a page (or what stands before a group) that does not end in LF."""


def group_of(page: int) -> int:
    """The number of the first page of the group that holds `page`; also its field's name.

    >>> group_of(1), group_of(256), group_of(257)
    (1, 1, 257)
    """
    return (page - 1) // GROUP_PAGES * GROUP_PAGES + 1


class Place(msgspec.Struct, frozen=True):
    """The state of the text at the start of a page: `newlines` and `chars` come before it, and
    `mid_line` says whether the page begins inside a line."""

    page: int
    newlines: int
    chars: int
    mid_line: bool


class Group:
    """One field of the index, parsed: cumulative counts after each of its pages."""

    __slots__ = ("chars", "ends_line", "first", "newlines", "start")

    def __init__(self, first: int, value: bytes) -> None:
        head, _, body = value.decode("ascii").partition(";")
        newlines, chars = map(int, head.rstrip(MID_LINE).split(" "))
        self.first = first
        self.start = Place(first, newlines, chars, head.endswith(MID_LINE))
        self.newlines: list[int] = []
        self.chars: list[int] = []
        self.ends_line: list[bool] = []
        for entry in body.split(" "):
            of_page, mark, _ = entry.partition(MID_LINE)
            lf, _, length = of_page.partition(",")
            newlines += int(lf)
            chars += int(length)
            self.newlines.append(newlines)
            self.chars.append(chars)
            self.ends_line.append(not mark)

    @property
    def last(self) -> int:
        """The number of the group's last page."""
        return self.first + len(self.chars) - 1

    def before(self, page: int) -> Place:
        """The place where `page` (of this group) begins."""
        i = page - self.first
        if i == 0:
            return self.start
        return Place(page, self.newlines[i - 1], self.chars[i - 1], not self.ends_line[i - 1])

    def after(self, page: int) -> Place:
        """The place where `page` (of this group) ends, which is where the next one begins."""
        i = page - self.first
        return Place(page + 1, self.newlines[i], self.chars[i], not self.ends_line[i])

    def page_of_newline(self, number: int) -> int:
        """The page that holds the LF with this number; the group's last page if it comes later."""
        return self.first + min(bisect_left(self.newlines, number), len(self.newlines) - 1)

    def page_of_char(self, number: int) -> int:
        """The page that holds the character with this number; the last page if it comes later."""
        return self.first + min(bisect_left(self.chars, number), len(self.chars) - 1)


class IndexWriter:
    """Builds the index and the totals of a content while its pages are cut.

    >>> writer = IndexWriter()
    >>> writer.add([Page(b"ab\\n", 3, 1, True), Page(b"cd", 2, 0, False)])
    >>> writer.fields(), writer.lines, writer.chars
    ({'1': '0 0;1,3 0,2~'}, 2, 5)
    """

    def __init__(self) -> None:
        self.pages = 0
        self.newlines = 0
        self.chars = 0
        self.bytes = 0
        self.ends_line = True
        self._head = "0 0"
        self._entries: list[str] = []
        self._full: dict[str, str] = {}

    @property
    def lines(self) -> int:
        """Lines of what was added so far."""
        return count_lines(self.newlines, self.chars, self.ends_line)

    def add(self, pages: Iterable[Page]) -> None:
        """Takes the next pages."""
        for data, chars, newlines, ends_line in pages:
            if len(self._entries) == GROUP_PAGES:
                self._close_group()
            mark = "" if ends_line else MID_LINE
            self._entries.append(f"{newlines},{chars}{mark}")
            self.pages += 1
            self.newlines += newlines
            self.chars += chars
            self.bytes += len(data)
            self.ends_line = ends_line

    def with_last(self, page: Page) -> IndexWriter:
        """The index as it is when `page` is the last one; this one is left as it was, and `page` may
        come again, longer."""
        whole = IndexWriter()
        whole.pages, whole.newlines, whole.chars = self.pages, self.newlines, self.chars
        whole.bytes, whole.ends_line = self.bytes, self.ends_line
        whole._head, whole._entries = self._head, self._entries.copy()
        whole.add([page])
        return whole

    @classmethod
    def before_last(cls, page: int, size_bytes: int, value: bytes) -> IndexWriter:
        """The index of all pages before `page`, the last one: they have `size_bytes` bytes, and `value`
        is the field of the group that holds `page`."""
        writer = cls()
        start = Group(group_of(page), value).before(page)
        writer.pages, writer.newlines, writer.chars = page - 1, start.newlines, start.chars
        writer.bytes, writer.ends_line = size_bytes, not start.mid_line
        writer._head, _, entries = value.decode("ascii").partition(";")
        writer._entries = entries.split(" ")[: page - group_of(page)]
        return writer

    def _close_group(self) -> None:
        self._full.update(self._open_group())
        # an empty text is "at the start of a line", so only a page with text can leave one open
        mark = MID_LINE if self.chars and not self.ends_line else ""
        self._head = f"{self.newlines} {self.chars}{mark}"
        self._entries = []

    def _open_group(self) -> dict[str, str]:
        return {str(group_of(self.pages)): f"{self._head};{' '.join(self._entries)}"}

    def full_groups(self) -> dict[str, str]:
        """The fields that will not change any more, each returned once."""
        full, self._full = self._full, {}
        return full

    def fields(self) -> dict[str, str]:
        """The fields not returned yet, with the last, unfinished group."""
        return {**self.full_groups(), **(self._open_group() if self._entries else {})}
