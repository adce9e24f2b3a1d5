"""Read the pages around a position, each with its place in the text, for screens that show a part of it.

A window is a few whole pages, about `WINDOW_CHARS` together, however large the content is. The position is
found by the index, so a line in the middle of a gigabyte costs as much as one at its start: at most four
round trips, two for a content whose index is cached. Of a page that is larger than a screen needs, only the
part around the position is returned.
"""

from __future__ import annotations

from typing import Literal

from fdstore.model.records import Descriptor, Record
from fdstore.store.content_info import ContentInfo
from fdstore.store.contents.locating import after_newline, collect, locate
from fdstore.store.contents.resolving import group_with, reads_content, retry_if_gone
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.selection import Part
from fdstore.wire.operation import Operation

WINDOW_CHARS = 24_000
"""Approximate number of characters of one window."""

MAX_PAGES = 64
"""The most pages of one window: pages may be as small as one character."""

SHOWN_CHARS = 65_536
SHOWN_LINES = 4_000
"""The most characters and lines returned of one page."""

LED_CHARS = 2_000
"""Characters before the position in the returned part of a large page."""

Side = Literal["after", "before", "around"]
"""The pages of a window: the one at the position and those after it, or those before it, or both."""


class PageText(Record, frozen=True, kw_only=True):
    """The text of one page, or a part of it, and its place: `first_line` and `first_char` are 1-based.
    `continued`: it begins in the middle of a line. `left_before` and `left_after` are the numbers of
    characters of the page that are missing at both ends."""

    page: int
    first_line: int
    first_char: int
    continued: bool
    text: str
    left_before: int = 0
    left_after: int = 0


class PageWindow(Record, frozen=True, kw_only=True):
    """Some pages of a content. `page` and `char` are the position that was asked for, `line` the line that
    holds it."""

    descriptor: Descriptor
    page: int
    char: int
    line: int
    pages: tuple[PageText, ...]


def read_window(handle: ProcessHandle, fd: str, part: Part, side: Side = "after") -> Operation[PageWindow]:
    """Return the pages around the start of a part. At most four round trips.

    Raises `NotFound`, `NotText`, `PageOutOfRange`, `PositionOutOfRange`.
    """
    return retry_if_gone(handle, fd, lambda: _read_window(handle, fd, part, side))


def pages_in_window(descriptor: Descriptor) -> int:
    """Return how many pages one window has."""
    each = max(1, descriptor.bytes // max(descriptor.pages, 1))
    return max(1, min(MAX_PAGES, WINDOW_CHARS // each))


@reads_content
def _read_window(handle: ProcessHandle, fd: str, part: Part, side: Side) -> Operation[PageWindow]:
    info, span = yield from locate(handle, fd, Part(part.mode, part.start, 1))
    d, target = info.descriptor, span.head.page
    numbers = _numbers(target, d, side)
    texts = yield from collect(info, numbers)
    pages, char, line = [], span.head.chars + 1, span.head.newlines + 1
    for number, data in zip(numbers, texts, strict=True):
        text, at = data.decode("utf-8"), 0
        if number == target:
            at = _offset(part, text, span.head.newlines, span.head.chars)
            char += at
            line += text.count("\n", 0, at)
        elif number < target:
            at = len(text)
        pages.append((yield from _place(info, number, text, at)))
    return PageWindow(descriptor=d, page=target, char=char, line=line, pages=tuple(pages))


def _numbers(target: int, descriptor: Descriptor, side: Side) -> range:
    count = pages_in_window(descriptor)
    first = target
    if side == "before":
        first = max(1, target - count + 1)
        return range(first, target + 1)
    if side == "around":  # what is seen at once; the rest is loaded when it comes near
        first = max(1, target - max(1, count // 6))
        count = max(2, count // 2) + target - first
    return range(first, min(descriptor.pages, first + count - 1) + 1)


def _offset(part: Part, text: str, newlines: int, chars: int) -> int:
    if part.mode == "line":
        return after_newline(text, part.start - 1 - newlines)
    if part.mode == "char":
        return max(0, part.start - 1 - chars)
    return 0


def _place(info: ContentInfo, number: int, text: str, at: int) -> Operation[PageText]:
    """Return a page, or the part of it around the offset `at`, with its place by the index."""
    before = (yield from group_with(info, number)).before(number)
    start, end = shown_part(text, at)
    shown = text[start:end]
    return PageText(
        page=number,
        first_line=before.newlines + 1 + text.count("\n", 0, start),
        first_char=before.chars + start + 1,
        continued=text[start - 1] != "\n" if start else before.mid_line and bool(text),
        text=shown,
        left_before=start,
        left_after=len(text) - end,
    )


def shown_part(text: str, at: int) -> tuple[int, int]:
    """Return the part of a page that is shown, as offsets: all of it, or about `SHOWN_CHARS` characters and
    `SHOWN_LINES` lines around the offset `at`.

    >>> shown_part("a\\nb\\n", 2), shown_part("a" * 100_000, 50_000)
    ((0, 4), (48000, 100000))
    """
    start = 0 if len(text) <= SHOWN_CHARS else max(0, min(at - LED_CHARS, len(text) - LED_CHARS))
    end = min(len(text), start + SHOWN_CHARS)
    if text.count("\n", start, end) > SHOWN_LINES:
        start = max(start, min(at, end) - LED_CHARS // 4)
        end = start + after_newline(text[start:end], SHOWN_LINES)
    return start, end
