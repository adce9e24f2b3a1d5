"""The page rule, and cutting a stream of text of any size into pages.

The rule, for a page that begins at s:

    at most page_size characters remain  ->  the page is the rest
    else, w = text[s : s + page_size]    ->  it ends after the last LF of w, or, if w has none,
                                             after page_size characters

So the join of all pages is the text, no page is longer than page_size, and pages end at lines
wherever lines are short enough. An empty text has one empty page.

`Cutter` applies it to text that arrives in blocks. A page can be cut only when more than page_size characters
are known from its start, so at most that much is buffered between blocks.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from copy import copy
from itertools import pairwise
from typing import Literal, NamedTuple

from fdstore.errors import InvalidArgument, NotEncoded

DecodeErrors = Literal["strict", "backslashreplace"]

DEFAULT_PAGE_SIZE = 4000
"""The default page size of text, in characters."""

BLOCK_CHARS = 250_000
"""Texts are cut in blocks of this many characters: small enough that Redis starts early and is blocked only
briefly by each, and not a power of two, which takes more memory in Redis."""


class Page(NamedTuple):
    """One page as stored: UTF-8 bytes, and their length in characters."""

    data: bytes
    chars: int


def page_end(text: str, start: int, size: int) -> int:
    """Return the end of the page that begins at `start`: after its last LF, else after `size` characters.

    >>> page_end("ab\\ncd", 0, 4), page_end("abcdef", 0, 4), page_end("abc", 0, 4)
    (3, 4, 3)
    """
    if len(text) - start <= size:
        return len(text)
    return (text.rfind("\n", start, start + size) + 1) or start + size


def pages_of(text: str, size: int) -> list[str]:
    """Return all pages of a text in memory.

    >>> pages_of("one\\ntwo\\nthree", 8)
    ['one\\ntwo\\n', 'three']
    """
    return _pages_from(text, 0, len(text), size) or [text]


def _pages_from(text: str, start: int, stop: int, size: int) -> list[str]:
    """Return the pages that begin from `start` to before `stop`."""
    ends = [start]
    rest = len(text) - size
    while start < stop:
        start = text.rfind("\n", start, start + size) + 1 or start + size if start < rest else len(text)
        ends.append(start)
    return [text[a:b] for a, b in pairwise(ends)]


def count_lines(text: str) -> int:
    """Return the number of lines of a text: its LFs, plus one if it is not empty and does not end in LF.

    >>> count_lines(""), count_lines("a\\n"), count_lines("a\\nb")
    (0, 1, 2)
    """
    return text.count("\n") + (text != "" and text[-1] != "\n")


def newlines_in(pages: list[bytes]) -> list[int]:
    """Count the LFs in each page. For lines of usual length, several times faster than `bytes.count`."""
    return [len(page) - len(page.replace(b"\n", b"")) for page in pages]


class Cutter:
    """Cuts a text that arrives in blocks into pages.

    >>> cutter = Cutter(4)
    >>> [p.data for p in cutter.feed(b"ab\\ncdefgh")], [p.data for p in cutter.finish()]
    ([b'ab\\n', b'cdef'], [b'gh'])

    Raises `InvalidArgument` for bytes that are not UTF-8 (unless `errors="backslashreplace"`) and
    for lone surrogates.
    """

    def __init__(self, page_size: int, errors: DecodeErrors = "strict") -> None:
        self.page_size = page_size
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors)
        self._bytes_fed = 0
        self._pending: list[str] = []
        self._pending_chars = 0
        self._any = False

    def feed(self, data: bytes) -> list[Page]:
        """Add the next bytes of the text. Return the pages they complete."""
        return self.feed_text(self._decode(data, final=False))

    def feed_text(self, text: str) -> list[Page]:
        """Add the next characters of the text. Return the pages they complete. Do not mix with `feed`."""
        self._pending.append(text)
        self._pending_chars += len(text)
        if self._pending_chars <= self.page_size:
            return []
        block = "".join(self._pending)
        pages = _pages_from(block, 0, len(block) - self.page_size, self.page_size)
        rest = block[sum(map(len, pages)) :]
        self._pending, self._pending_chars = [rest], len(rest)
        self._any = True
        return _encoded(pages)

    def finish(self) -> list[Page]:
        """End the text. Return its last page; for an empty text, its one empty page."""
        pages = self.feed_text(self._decode(b"", final=True))
        if self._pending_chars or not self._any:
            pages.append(self.rest())
        self._pending, self._pending_chars = [], 0
        return pages

    def rest(self) -> Page:
        """Return the last page as if the text ended here. More may be fed afterwards."""
        [page] = _encoded(["".join(self._pending)])
        return page

    def copied(self) -> Cutter:
        """Return a cutter at the same place of a text that is fed by `feed_text`."""
        copied = copy(self)
        copied._pending = self._pending.copy()
        return copied

    def _decode(self, data: bytes, *, final: bool) -> str:
        kept = len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(data, final)
        except UnicodeDecodeError as error:
            position = self._bytes_fed - kept + error.start + 1
            raise NotEncoded("utf-8", position, error.reason) from error
        self._bytes_fed += len(data)
        return text


def cut(text: str, page_size: int) -> Iterator[list[Page]]:
    """Yield the pages of a text in memory, block by block, so that little is encoded at a time."""
    start = 0
    while start < len(text):
        pages = _pages_from(text, start, min(start + BLOCK_CHARS, len(text)), page_size)
        start += sum(map(len, pages))
        yield _encoded(pages)
    if not text:
        yield [Page(b"", 0)]


def encode(text: str) -> bytes:
    """Encode `text` in UTF-8. Raises `InvalidArgument` for a lone surrogate, which UTF-8 cannot represent."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _surrogate(error) from error


def _encoded(pages: list[str]) -> list[Page]:
    try:
        return [Page(page.encode(), len(page)) for page in pages]
    except UnicodeEncodeError as error:
        raise _surrogate(error) from error


def _surrogate(error: UnicodeEncodeError) -> InvalidArgument:
    code = ord(error.object[error.start])
    return InvalidArgument(
        "text", f"it holds the lone surrogate U+{code:04X}, which is not a character; remove it"
    )
