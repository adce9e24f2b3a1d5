"""Compute what must be stored when a growing text, or growing bytes, get another piece.

Pages and index of a growing text are always those of the same text stored in one piece. By the page rule only
the last page can still change: it grows until there are more than `page_size` characters, and then ends after
its last LF, or is full. So a piece changes the last page, adds pages after it, and rewrites the fields of the
index that describe these. Everything before is final. Bytes are the same without an index.
"""

from __future__ import annotations

from copy import copy

import msgspec

from fdstore.text.byte_pages import ByteCutter
from fdstore.text.index import IndexWriter, group_of
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.paging import Cutter, Page


class GrowthStep(msgspec.Struct, frozen=True):
    """The changes for one piece. `before` is the number of characters before it; `pages` are the texts of
    page `first_page` and the following ones; the totals are those of the whole text with the piece. Of
    bytes, `before` and `chars` count bytes: they are the position that writers and followers share."""

    before: int
    first_page: int
    pages: tuple[bytes, ...]
    index: dict[str, str]
    chars: int
    bytes: int
    lines: int
    page_count: int


class GrowingText:
    """The state of a growing text at its end.

    >>> growth = GrowingText(4)
    >>> growth.add("ab\\n").pages, growth.add("cd").pages
    ((b'ab\\n',), (b'ab\\n', b'cd'))
    """

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self._cutter = Cutter(page_size)
        self._index = IndexWriter()
        self.chars = 0

    @classmethod
    def resumed(cls, page_size: int, page: int, last: bytes, size_bytes: int, group: bytes) -> GrowingText:
        """Restore the state of a stored text: `page` is its last page, with the text `last`, `size_bytes` the
        bytes of all pages, `group` the index field that describes `page`."""
        growth = cls(page_size)
        growth._index = IndexWriter.before_last(page, size_bytes - len(last), group)
        text = last.decode("utf-8")
        growth._cutter.feed_text(text)
        growth.chars = growth._index.chars + len(text)
        return growth

    def copied(self) -> GrowingText:
        """Return a copy."""
        copied = copy(self)
        copied._cutter, copied._index = self._cutter.copied(), self._index.copied()
        return copied

    def add(self, text: str) -> GrowthStep:
        """Append a piece. Return what must be stored. Raises `InvalidArgument` for a lone surrogate."""
        before = self.chars
        first = self._index.pages + 1
        final = self._cutter.feed_text(text)
        self._index.add(final)
        last: Page = self._cutter.rest()
        full = self._index.full_groups()
        whole = self._index.with_last(last)
        self.chars = whole.chars
        return GrowthStep(
            before=before,
            first_page=first,
            pages=(*(page.data for page in final), last.data),
            index=full | whole.fields(),
            chars=whole.chars,
            bytes=whole.bytes,
            lines=whole.lines,
            page_count=whole.pages,
        )


class GrowingBytes:
    """The state of growing bytes at their end.

    >>> growth = GrowingBytes(4)
    >>> growth.add(b"ab").pages, growth.add(b"cdef").pages
    ((b'ab',), (b'abcd', b'ef'))
    """

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self._cutter = ByteCutter(page_size)
        self._full_pages = 0
        self.chars = 0

    @classmethod
    def resumed(cls, page_size: int, page: int, last: bytes, size_bytes: int) -> GrowingBytes:
        """Restore the state of stored bytes: `page` is their last page, which holds `last`."""
        growth = cls(page_size)
        growth._full_pages = page - 1 + len(growth._cutter.feed(last))
        growth.chars = size_bytes
        return growth

    def copied(self) -> GrowingBytes:
        """Return a copy."""
        copied = copy(self)
        copied._cutter = self._cutter.copied()
        return copied

    def add(self, data: bytes) -> GrowthStep:
        """Append a piece. Return what must be stored."""
        before = self.chars
        first = self._full_pages + 1
        full = self._cutter.feed(data)
        self._full_pages += len(full)
        self.chars += len(data)
        return GrowthStep(
            before=before,
            first_page=first,
            pages=(*(page.data for page in full), self._cutter.rest().data),
            index={},
            chars=self.chars,
            bytes=self.chars,
            lines=0,
            page_count=self._full_pages + 1,
        )


def empty_index(page_size: int) -> str:
    """Return the only index field of an empty text."""
    return GrowingText(page_size).add("").index[str(group_of(1))]


def ended_at(group: bytes, page: int, size_bytes: int, last: bytes) -> bytes:
    """Return the index field of a text of `size_bytes` bytes whose last page is `page`, with the text `last`.
    `group` may be the field of a longer text, or of one with a shorter last page."""
    index = IndexWriter.before_last(page, size_bytes - len(last), group)
    cutter = Cutter(MAX_INTEGER)
    cutter.feed_text(last.decode("utf-8"))
    return index.with_last(cutter.rest()).fields()[str(group_of(page))].encode("ascii")
