"""The extent of a part of a text, and the cutting of a text into parts, by the index.

A part begins and ends at any character, so its extent says where it is in the text: its first character and
line, and how many it has. To cut a text into parts, no text is moved: the index has the
position of every page, and most pages end at line ends. Only to cut it into lines, or into parts that are not
much longer than a page, is it read, some pages at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.model.records import Descriptor
from fdstore.store.content_info import ContentInfo
from fdstore.store.contents.locating import collect, cut_head, cut_tail, fetch_part, locate
from fdstore.store.contents.resolving import content_info, group_with, reads_content, retry_if_gone
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.index import GROUP_PAGES, Group, TextPosition, group_of
from fdstore.text.selection import AnyPart, Part
from fdstore.wire.operation import Operation

SplitUnit: TypeAlias = Literal["chars", "lines", "pages"]

GROUPS_AT_ONCE = 100
"""Fields of the index that one request fetches, some 2 KB each."""

MAX_PARTS = 100_000

PAGES_OF_TEXT = 2
"""Parts of fewer pages than this are cut in the text itself: pages are too coarse for them."""


class Extent(msgspec.Struct, frozen=True):
    """The position of a part in its text, and the characters and lines that it touches. Both count from 1; an
    empty part has none of either."""

    first_char: int
    chars: int
    first_line: int
    lines: int

    @property
    def part(self) -> Part:
        """The characters, as a part that can be read. Not of an empty extent."""
        return Part("char", self.first_char, self.chars)


def whole(descriptor: Descriptor) -> Extent:
    """Return the extent of a whole text."""
    return Extent(1, descriptor.chars, 1, descriptor.lines)


@reads_content
def measure(handle: ProcessHandle, fd: str, part: AnyPart | None) -> Operation[tuple[Descriptor, Extent]]:
    """Return the descriptor of a text and the extent of a part of it, of all of it for None. No round trip
    if it is cached, else one for the index and one for the pages at the ends.

    Raises `NotFound`, `NotText`, `PageOutOfRange`, `PositionOutOfRange`.
    """
    return (yield from retry_if_gone(handle, fd, lambda: _measure(handle, fd, part)))


def _measure(handle: ProcessHandle, fd: str, part: AnyPart | None) -> Operation[tuple[Descriptor, Extent]]:
    if part is None:
        info = yield from content_info(handle, fd)
        info.require_text()
        return info.descriptor, whole(info.descriptor)
    info, span = yield from locate(handle, fd, part)
    [head_text] = yield from _texts(info, [span.head.page])
    [tail_text] = [head_text]
    if span.tail.page != span.head.page:
        [tail_text] = yield from _texts(info, [span.tail.page])
    skipped, kept = head_text[: cut_head(span, head_text)], tail_text[: cut_tail(span, tail_text)]
    return info.descriptor, _between(_moved(span.head, skipped), _moved(span.tail, kept))


def _texts(info: ContentInfo, pages: Iterable[int]) -> Operation[list[str]]:
    texts = []
    for page in pages:
        [data] = yield from collect(info, range(page, page + 1))
        texts.append(data.decode("utf-8"))
    return texts


def _moved(start: TextPosition, text: str) -> TextPosition:
    """Return the position behind a text that begins at `start`."""
    mid_line = not text.endswith("\n") if text else start.mid_line
    return TextPosition(start.page, start.newlines + text.count("\n"), start.chars + len(text), mid_line)


def _between(begin: TextPosition, end: TextPosition) -> Extent:
    chars = end.chars - begin.chars
    lines = end.newlines - begin.newlines + (chars > 0 and end.mid_line)
    return Extent(begin.chars + 1, chars, begin.newlines + 1, lines)


@reads_content
def split(
    handle: ProcessHandle, fd: str, extent: Extent, unit: SplitUnit, size: int
) -> Operation[list[Extent]]:
    """Cut a part of a text into parts of at most `size` units, the last one excepted of exactly as many lines
    or pages. Those of characters end at line ends where a line is not longer than that; longer lines are cut.

    The text is read, in little memory, only for parts of lines and those not much longer than a page. Raises
    `InvalidArgument` for more than `MAX_PARTS`.
    """
    if unit not in ("chars", "lines", "pages"):
        raise InvalidArgument("unit", f"{quoted(unit)} is none of chars, lines and pages")
    if extent.chars == 0:
        return [extent]
    units = {"chars": extent.chars, "lines": extent.lines, "pages": 0}[unit]
    if units > MAX_PARTS * size:
        problem = f"{units} {unit} in parts of {size} are more than {MAX_PARTS} parts"
        raise InvalidArgument(unit, f"{problem}; take larger ones")
    return (yield from retry_if_gone(handle, fd, lambda: _split(handle, fd, extent, unit, size)))


def _split(
    handle: ProcessHandle, fd: str, extent: Extent, unit: SplitUnit, size: int
) -> Operation[list[Extent]]:
    info, span = yield from locate(handle, fd, extent.part)
    page_size = info.descriptor.page_size
    is_fine = unit == "lines" or (unit == "chars" and size < PAGES_OF_TEXT * page_size)
    if is_fine or info.descriptor.state == "open":
        cutter = _Cutter(extent, unit, size * page_size if unit == "pages" else size)
        yield from fetch_part(info, span, cutter.take)
        return cutter.finish()
    starts = yield from _page_starts(info, span.pages)
    begin = TextPosition(span.head.page, extent.first_line - 1, extent.first_char - 1, False)
    parts = []
    last_char, last_line = extent.first_char + extent.chars - 1, extent.first_line + extent.lines - 1
    for cut in starts[size - 1 :: size] if unit == "pages" else _cuts(starts, begin.chars, last_char, size):
        parts.append(_between(begin, cut))
        begin = cut
    left = last_char - begin.chars
    parts.append(Extent(begin.chars + 1, left, begin.newlines + 1, last_line - begin.newlines))
    return parts


def _page_starts(info: ContentInfo, pages: range) -> Operation[list[TextPosition]]:
    """Return the positions where these pages begin, but for the first."""
    starts: list[TextPosition] = []
    firsts = range(group_of(pages[0]), pages[-1] + 1, GROUP_PAGES)
    for at in range(0, len(firsts), GROUPS_AT_ONCE):
        some = firsts[at : at + GROUPS_AT_ONCE]
        missing = [first for first in some if info.groups.get(first) is None]
        fetched: dict[int, Group] = {}
        if len(missing) > 1:
            values, created = yield [("HMGET", info.keys.index, *missing), info.proof]
            info.check(created, complete=None not in values)
            fetched = {
                first: info.decode_group(first, value) for first, value in zip(missing, values, strict=True)
            }
        for first in some:
            group = fetched.get(first) or (yield from group_with(info, first))
            inside = range(max(first, pages[0] + 1), min(first + GROUP_PAGES - 1, pages[-1]) + 1)
            starts += [group.before(page) for page in inside]
    return starts


def _cuts(starts: list[TextPosition], begin: int, end: int, size: int) -> Iterator[TextPosition]:
    """Yield the page starts at which to cut a text between these offsets into parts of `size` characters: the
    last one that is also the start of a line, else the last one; a page that is longer stays whole."""
    at = 0
    while begin + size < end and at < len(starts):
        fits = at
        while fits < len(starts) and starts[fits].chars <= begin + size:
            fits += 1
        fitting = range(fits - 1, at - 1, -1)
        chosen = next((i for i in fitting if not starts[i].mid_line), max(fits - 1, at))
        yield starts[chosen]
        begin, at = starts[chosen].chars, chosen + 1


class _Cutter:
    """Cuts a text that it takes a run of pages at a time, and keeps none of it. Parts have `size` lines; or
    at most `size` characters, with a line end at their end if there is one."""

    def __init__(self, extent: Extent, unit: SplitUnit, size: int) -> None:
        self._of_lines, self._size = unit == "lines", size
        self._chars, self._newlines = extent.first_char - 1, extent.first_line - 1
        self._mid_line = False
        self._begin = self._line_end = self._here()
        self._parts: list[Extent] = []

    def _here(self) -> TextPosition:
        return TextPosition(0, self._newlines, self._chars, self._mid_line)

    def take(self, run: list[bytes]) -> Operation[None]:
        text = b"".join(run).decode("utf-8")
        at = 0
        while at < len(text):
            end = text.find("\n", at) + 1
            self._add((end or len(text)) - at, ends_line=end > 0)
            at = end or len(text)
        return
        yield  # makes this a generator

    def _add(self, chars: int, *, ends_line: bool) -> None:
        while not self._of_lines and self._chars + chars > self._begin.chars + self._size:
            if self._line_end.chars > self._begin.chars:
                self._cut(self._line_end)
            else:
                self._cut(TextPosition(0, self._newlines, self._begin.chars + self._size, True))
        self._chars += chars
        self._newlines += ends_line
        self._mid_line = not ends_line
        if ends_line and self._of_lines and self._newlines == self._begin.newlines + self._size:
            self._cut(self._here())
        elif ends_line and not self._of_lines:
            self._line_end = self._here()

    def _cut(self, at: TextPosition) -> None:
        self._parts.append(_between(self._begin, at))
        self._begin = at

    def finish(self) -> list[Extent]:
        """Return the parts, when all of the text was taken."""
        if self._chars > self._begin.chars:
            self._cut(self._here())
        return self._parts
