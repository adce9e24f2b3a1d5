"""Pages of contents that are bytes: page n holds bytes (n-1)*page_size to n*page_size, as they are.

So a position needs no index: bytes have neither characters nor lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

from fdstore.text.paging import Page

DEFAULT_BYTE_PAGE_SIZE = 65_536
"""The default page size of bytes."""

BLOCK_BYTES = 250_000
"""Bytes are cut in blocks of about this many."""


class ByteCutter:
    """Cuts bytes that arrive in blocks into pages.

    >>> cutter = ByteCutter(4)
    >>> [p.data for p in cutter.feed(b"abcdefghij")], [p.data for p in cutter.finish()]
    ([b'abcd', b'efgh'], [b'ij'])
    """

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._any = False

    def feed(self, data: bytes) -> list[Page]:
        """Add the next bytes. Return the pages they complete: there may be more after each."""
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes <= self.page_size:
            return []
        block = b"".join(self._pending)
        ends = range(self.page_size, len(block), self.page_size)
        pages = [Page(block[end - self.page_size : end], 0) for end in ends]
        rest = block[len(pages) * self.page_size :]
        self._pending, self._pending_bytes, self._any = [rest], len(rest), True
        return pages

    def finish(self) -> list[Page]:
        """End the content. Return its last page; for an empty content, its one empty page."""
        rest = b"".join(self._pending)
        self._pending, self._pending_bytes = [], 0
        return [Page(rest, 0)] if rest or not self._any else []

    def rest(self) -> Page:
        """Return the last page as if the content ended here. More may be fed afterwards."""
        return Page(b"".join(self._pending), 0)

    def copied(self) -> ByteCutter:
        """Return a cutter at the same place."""
        copied = copy(self)
        copied._pending = self._pending.copy()
        return copied


def cut_bytes(data: bytes, page_size: int) -> Iterator[list[Page]]:
    """Yield the pages of bytes in memory, block by block."""
    cutter = ByteCutter(page_size)
    for start in range(0, len(data), BLOCK_BYTES):
        yield cutter.feed(data[start : start + BLOCK_BYTES])
    yield cutter.finish()


class ByteTotals:
    """The totals of a content of bytes, while its pages are cut; in place of an `IndexWriter`.

    >>> totals = ByteTotals()
    >>> totals.add(ByteCutter(4).feed(b"abcdef"))
    >>> totals.pages, totals.bytes, totals.fields()
    (1, 4, {})
    """

    chars = newlines = lines = 0

    def __init__(self) -> None:
        self.pages = 0
        self.bytes = 0

    def add(self, pages: Sequence[Page]) -> None:
        """Add the next pages."""
        for page in pages:
            self.pages += 1
            self.bytes += len(page.data)

    def full_groups(self) -> dict[str, str]:
        """Return nothing: bytes have no index."""
        return {}

    fields = full_groups
