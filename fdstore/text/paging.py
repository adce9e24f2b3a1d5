"""The page rule, and cutting a stream of text of any size into pages.

The rule, for a page that begins at s:

    at most page_size characters remain  ->  the page is the rest
    else, w = text[s : s + page_size]    ->  it ends after the last LF of w, or, if w has none,
                                             after page_size characters

So the join of all pages is the text, no page is longer than page_size, and pages end at lines
wherever lines are short enough. An empty text has one empty page.

`Cutter` applies it to blocks of 250 000. ASCII blocks (nearly all text that agents store) are cut as bytes,
where a character is a byte; other blocks are decoded, one block at a time. A page can be cut only when more
than page_size characters are known from its start, so at most that much is buffered between blocks.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Literal, NamedTuple

from fdstore.errors import InvalidArgument, NotEncoded
from fdstore.text.numbers import MAX_INTEGER

DecodeErrors = Literal["strict", "backslashreplace"]

BLOCK_CHARS = 250_000
"""Texts are cut in blocks of this many characters: small enough that Redis starts early and is blocked only
briefly by each, and not a power of two, which takes more memory in Redis."""


class Page(NamedTuple):
    """One page as stored: UTF-8 bytes, their length in characters, and the counts for the index."""

    data: bytes
    chars: int
    newlines: int
    ends_line: bool


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
    starts = [0]
    while (end := page_end(text, starts[-1], size)) < len(text):
        starts.append(end)
    return [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]


def count_lines(newlines: int, chars: int, ends_line: bool) -> int:
    """Return the number of lines of a text: its LFs, plus one if it is not empty and does not end in LF."""
    return newlines + (1 if chars and not ends_line else 0)


def newlines_in(data: bytes) -> int:
    """Count the LFs in `data`. For lines of usual length, several times faster than `bytes.count`."""
    return len(data) - len(data.replace(b"\n", b""))


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
        self._errors = errors
        self._decoder: codecs.IncrementalDecoder | None = None
        self._undecoded = False
        self._bytes_fed = 0
        self._pending: list[bytes | str] = []
        self._pending_chars = 0
        self._any = False

    def feed(self, data: bytes) -> list[Page]:
        """Add the next bytes of the text. Return the pages they complete."""
        if data.isascii() and not self._undecoded:
            self._bytes_fed += len(data)
            return self._take(data)
        return self._take(self._decode(data, final=False))

    def feed_text(self, text: str) -> list[Page]:
        """Add the next characters of the text. Return the pages they complete. Do not mix with `feed`."""
        return self._take(text.encode("ascii") if text.isascii() else text)

    def finish(self) -> list[Page]:
        """End the text. Return its last page; for an empty text, its one empty page."""
        last = self._decode(b"", final=True) if self._undecoded else ""
        pages = self._take(last) if last else []
        rest = self._joined()
        self._pending, self._pending_chars = [], 0
        if rest or not (self._any or pages):
            pages.append(_page(rest))
        return pages

    def rest(self) -> Page:
        """Return the last page as if the text ended here. More may be fed afterwards."""
        return _page(self._joined())

    def _decode(self, data: bytes, *, final: bool) -> str:
        if self._decoder is None:
            self._decoder = codecs.getincrementaldecoder("utf-8")(self._errors)
        kept = len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(data, final)
        except UnicodeDecodeError as error:
            position = self._bytes_fed - kept + error.start + 1
            raise NotEncoded("utf-8", position, error.reason) from error
        self._bytes_fed += len(data)
        self._undecoded = bool(self._decoder.getstate()[0])
        return text

    def _joined(self) -> bytes | str:
        if all(isinstance(piece, bytes) for piece in self._pending):
            return b"".join(piece for piece in self._pending if isinstance(piece, bytes))
        return "".join(p if isinstance(p, str) else p.decode("ascii") for p in self._pending)

    def _take(self, piece: bytes | str) -> list[Page]:
        self._pending.append(piece)
        self._pending_chars += len(piece)
        if self._pending_chars <= self.page_size:
            return []
        block = self._joined()
        if isinstance(block, bytes):
            pages, start = _cut_ascii(block, self.page_size)
        else:
            pages, start = _cut_text(block, self.page_size)
        rest = block[start:]
        if isinstance(rest, str) and rest.isascii():
            rest = rest.encode("ascii")
        self._pending, self._pending_chars = [rest], len(rest)
        self._any = True
        return pages


def cut(text: str, page_size: int) -> Iterator[list[Page]]:
    """Yield the pages of a text in memory, block by block, so that little is encoded at a time."""
    if len(text) <= page_size:
        yield [_page(text)]
    elif text.isascii():
        cutter = Cutter(page_size)
        for start in range(0, len(text), BLOCK_CHARS):
            yield cutter.feed_text(text[start : start + BLOCK_CHARS])
        yield cutter.finish()
    else:
        # cut where it is: its blocks would be copied twice, at up to four bytes a character
        start = 0
        while len(text) - start > page_size:
            pages, start = _cut_text(text, page_size, start, start + BLOCK_CHARS)
            yield pages
        yield [_page(text[start:])]


def encode(text: str) -> bytes:
    """Encode `text` in UTF-8. Raises `InvalidArgument` for a lone surrogate, which UTF-8 cannot represent."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise InvalidArgument(
            "text", f"it holds the lone surrogate U+{code:04X}, which is not a character; remove it"
        ) from error


def _page(rest: bytes | str) -> Page:
    data = rest if isinstance(rest, bytes) else encode(rest)
    return Page(data, len(rest), newlines_in(data), data.endswith(b"\n"))


def _cut_ascii(data: bytes, size: int) -> tuple[list[Page], int]:
    pages = []
    start, final = 0, len(data) - size
    while start < final:
        end = data.rfind(b"\n", start, start + size) + 1
        ends_line = end > 0
        end = end or start + size
        page = data[start:end]
        pages.append(Page(page, end - start, newlines_in(page), ends_line))
        start = end
    return pages, start


def _cut_text(text: str, size: int, start: int = 0, stop: int = MAX_INTEGER) -> tuple[list[Page], int]:
    """Cut the pages that begin from `start` to before `stop`, except the last of the text. Return their end
    as well."""
    pages = []
    final = min(len(text) - size, stop)
    while start < final:
        end = text.rfind("\n", start, start + size) + 1
        ends_line = end > 0
        end = end or start + size
        page = encode(text[start:end])
        pages.append(Page(page, end - start, newlines_in(page), ends_line))
        start = end
    return pages, start
