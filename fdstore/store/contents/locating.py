"""Locate a part of a content and fetch it.

Every part is a `PageSpan`: a run of whole pages, cut at both ends. Locating it needs only the index; fetching
it transfers only those pages, in pipelined requests when there are many. To find a value of JSON the whole
text is read first; the client remembers where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import msgspec

from fdstore.model.records import Descriptor
from fdstore.store.content_info import ContentGone, ContentInfo, Unit
from fdstore.store.contents.page_fields import fields_of, joined
from fdstore.store.contents.resolving import content_info, group_with, reads_content, resolve
from fdstore.store.contents.returning import fetch_cold, read_missing
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.recent import Recent
from fdstore.text.index import Group, TextPosition
from fdstore.text.json_pointer import CharSpan, ValueFinder
from fdstore.text.selection import AnyPart, JsonValue, Part, clamp
from fdstore.wire.operation import Abandon, Batch, Disk, Operation, Receive, Send

WINDOW_BYTES = 256_000
"""Approximate size of one request of a long read."""

AHEAD = 3
"""Requests in flight during a long read whose pages are consumed one run after the other, as fast as a file
is written or a text searched: what is in flight is in the memory of Redis."""

AHEAD_IN_MEMORY = 128
"""Requests in flight during a read into memory, which is as fast as the network: about 33 MB, so that only
the longest reads wait for more than one round trip."""

MAX_VALUES = 32
"""Values of JSON whose place in one content a client remembers."""

LOOKS = 3
"""The number of times a part is looked up before it counts as missing: other threads that read the same
content may evict its index groups from the cache in between."""

Take = Callable[[list[bytes]], Operation[None]]
"""Consumes each run of pages of a long read."""


class PageSpan(msgspec.Struct, frozen=True):
    """A part of a content, from inside page `head.page` to inside page `tail.page`. `head` and `tail` are
    the text positions at the starts of those pages."""

    part: Part
    head: TextPosition
    tail: TextPosition

    @property
    def pages(self) -> range:
        return range(self.head.page, self.tail.page + 1)


def after_newline(text: str, number: int) -> int:
    """Return the offset just after the LF with this number in `text`, or its length if there are fewer.

    >>> after_newline("a\\nb\\nc", 2), after_newline("a\\nb\\nc", 0), after_newline("a", 1)
    (4, 0, 1)
    """
    if number <= 0:
        return 0
    pieces = text.split("\n", number)
    return len(text) - len(pieces[-1]) if len(pieces) > number else len(text)


def cut_head(span: PageSpan, text: str) -> int:
    """Return the offset in the text of the first page where the span begins."""
    if span.part.mode == "line":
        return after_newline(text, span.part.start - 1 - span.head.newlines)
    if span.part.mode == "char":
        return span.part.start - 1 - span.head.chars
    return 0


def cut_tail(span: PageSpan, text: str) -> int:
    """Return the offset in the text of the last page where the span ends."""
    if span.part.mode == "line":
        return after_newline(text, span.part.last - span.tail.newlines)
    if span.part.mode == "char":
        return span.part.last - span.tail.chars
    return len(text)


def total_of(descriptor: Descriptor, mode: str) -> int:
    """Return how many pages, lines or characters the content has."""
    return {"page": descriptor.pages, "line": descriptor.lines, "char": descriptor.chars}[mode]


def locate(handle: ProcessHandle, fd: str, part: AnyPart) -> Operation[tuple[ContentInfo, PageSpan]]:
    """Locate a part of a content: no round trip if its index is cached, one otherwise.

    Raises `NotFound`, `PageOutOfRange`, `PositionOutOfRange`, of a value of JSON `InvalidArgument` and
    `NoSuchValue`.
    """
    if isinstance(part, JsonValue):
        read, chars = yield from _chars_of(handle, fd, part)
        info, span = yield from locate(handle, fd, chars)
        if (info.content, info.created) != (read.content, read.created):
            raise ContentGone(fd)  # the name means another content by now
        return info, span
    if part.mode == "page":
        info = yield from content_info(handle, fd)
        info.require_text()
        clamped = clamp(fd, part, info.descriptor.pages)
        head = (yield from group_with(info, clamped.start)).before(clamped.start)
        tail = (yield from group_with(info, clamped.last)).before(clamped.last)
        return info, PageSpan(clamped, head, tail)

    unit: Unit = "newlines" if part.mode == "line" else "chars"
    # a line begins after the LF before it, a character at itself
    first = part.start - 1 if part.mode == "line" else part.start
    known = handle.known(fd)
    found = _groups(known, unit, first, part) if known else None
    for _ in range(LOOKS):
        if known is None or found is None:
            known, _ = yield from resolve(handle, fd, unit=unit, first=first, last=part.last)
            known.require_text()
            found = _groups(known, unit, first, part)
    assert known is not None
    clamped = clamp(fd, part, total_of(known.descriptor, part.mode))
    if found is None:
        raise ContentGone(fd)
    head_group, tail_group = found
    if part.mode == "line":
        return known, PageSpan(clamped, _line_start(head_group, first), _line_end(tail_group, clamped.last))
    head = head_group.before(head_group.page_of_char(clamped.start))
    tail = tail_group.before(tail_group.page_of_char(clamped.last))
    return known, PageSpan(clamped, head, tail)


@reads_content
def pages_of_chars(handle: ProcessHandle, fd: str, first: int, last: int) -> Operation[tuple[int, int]]:
    """Return the first and the last page that these characters touch; round trips as of `locate`."""
    _, span = yield from locate(handle, fd, Part("char", first, last - first + 1))
    return span.head.page, span.tail.page


def _chars_of(handle: ProcessHandle, fd: str, value: JsonValue) -> Operation[tuple[ContentInfo, Part]]:
    """Return the characters of a value of JSON. The text is read in bounded memory, unless it is known where
    the value is."""
    info = yield from content_info(handle, fd)
    info.require_text()
    span = info.values.get(value.pointer) if info.values else None
    if span is None:
        span = yield from _find_value(info, value, lines=False)
        if info.descriptor.state != "open":
            info.values = info.values or Recent(MAX_VALUES)
            info.values.put(value.pointer, span)
    return info, Part("char", span.start + 1, span.end - span.start)


class _EnoughRead(Exception):
    """Stops the read of a text whose rest does not matter."""


def _find_value(info: ContentInfo, value: JsonValue, *, lines: bool) -> Operation[CharSpan]:
    finder = ValueFinder(info.descriptor.fd, value.pointer, lines=lines)

    def take(run: list[bytes]) -> Operation[None]:
        yield Disk(lambda: finder.feed(b"".join(run).decode("utf-8")))
        if finder.done:
            raise _EnoughRead

    with suppress(_EnoughRead):
        yield from fetch(info, range(1, info.descriptor.pages + 1), take)
        yield Disk(lambda: finder.feed(None))
    if finder.must_begin_again:
        return (yield from _find_value(info, value, lines=True))
    return finder.span


def clamp_span(handle: ProcessHandle, fd: str, part: AnyPart) -> Operation[Part]:
    """Return the part in units that are counted, cut at the end of the content."""
    if isinstance(part, JsonValue):
        _, part = yield from _chars_of(handle, fd, part)
    info = yield from content_info(handle, fd)
    info.require_text()
    return clamp(fd, part, total_of(info.descriptor, part.mode))


def _groups(info: ContentInfo, unit: Unit, first: int, part: Part) -> tuple[Group, Group] | None:
    head = info.group_at(unit, first)
    if head is None:
        return None
    tail = head if part.last <= getattr(head.end, unit) else info.group_at(unit, part.last)
    return (head, tail) if tail else None


def _line_start(group: Group, newlines_before: int) -> TextPosition:
    if newlines_before == 0:
        return group.start
    page = group.page_of_newline(newlines_before)
    after = group.after(page)
    # if the LF is the last character of its page, the line begins on the next page
    return after if after.newlines == newlines_before and not after.mid_line else group.before(page)


def _line_end(group: Group, newlines: int) -> TextPosition:
    return group.before(group.page_of_newline(newlines))


def window_of(descriptor: Descriptor) -> int:
    """Return how many pages one request of a long read fetches."""
    each = max(1, descriptor.bytes // max(descriptor.pages, 1))
    return max(1, min(1000, WINDOW_BYTES // each))


def request(info: ContentInfo, run: range) -> Batch:
    """Return the batch that fetches these pages; `pages_in` validates its replies."""
    return [("HMGET", info.keys.pages, *(fields_of(run) if info.is_split else run)), info.proof]


def pages_in(info: ContentInfo, replies: list[Any]) -> list[bytes] | None:
    """Return the pages in the replies to a `request`, None if some are missing: the content may be cold (see
    `cold_pages`). Raises `ContentGone` if the content is gone, `StoreLostData` if it was replaced."""
    found, created = replies
    if info.is_split:
        found = joined(found)
    if None in found:
        return None
    info.check(created)
    return cast("list[bytes]", found)


def _fetch_run(info: ContentInfo, pages: range) -> Operation[list[bytes]]:
    """Fetch pages with one request."""
    replies = yield request(info, pages)
    found = pages_in(info, replies)
    return (yield from read_missing(info, pages, replies[-1])) if found is None else found


def fetch(info: ContentInfo, pages: range, take: Take, ahead: int = AHEAD) -> Operation[None]:
    """Pass the pages to `take` in order, in runs of about `WINDOW_BYTES`, with up to `ahead` requests in
    flight. The last page of an open content is taken from `info`.

    Raises `ContentGone` if the content is gone.
    """
    if info.last_page is not None and pages[-1] == info.descriptor.pages:
        if len(pages) > 1:
            yield from fetch(info, pages[:-1], take, ahead)
        yield from take([info.last_page])
        return
    window = window_of(info.descriptor)
    if len(pages) <= window:
        yield from take((yield from _fetch_run(info, pages)))
        return
    # no list of all pages: their number comes from a record, which is not trusted
    starts = range(0, len(pages), window)
    try:
        for i in starts[:ahead]:
            yield Send(request(info, pages[i : i + window]), "read")
        for i in starts:
            replies = yield Receive("read")
            found = pages_in(info, replies)
            if found is None:
                yield Abandon("read")
                yield from fetch_cold(info, pages[i:], replies[-1], take)
                return
            later = i + ahead * window
            if later < len(pages):
                yield Send(request(info, pages[later : later + window]), "read")
            yield from take(found)
    except Exception:
        yield Abandon("read")  # another attempt of this operation must not receive these replies
        raise


def _of_whole_pages(info: ContentInfo, take: Take) -> Take:
    """Return a `take` that raises `ValueError` if pages of bytes have other sizes than the totals say."""
    d = info.descriptor
    left = d.bytes

    def checked(run: list[bytes]) -> Operation[None]:
        nonlocal left
        for data in run:
            if len(data) != min(left, d.page_size):
                raise ValueError(f"a page has {len(data)} bytes, not {min(left, d.page_size)}")
            left -= len(data)
        yield from take(run)

    return checked


def collect(info: ContentInfo, pages: range) -> Operation[list[bytes]]:
    """Fetch the pages into a list."""
    if info.last_page is None and len(pages) <= window_of(info.descriptor):
        return (yield from _fetch_run(info, pages))
    parts: list[bytes] = []

    def take(run: list[bytes]) -> Operation[None]:
        parts.extend(run)
        return
        yield  # makes this a generator

    yield from fetch(info, pages, take, AHEAD_IN_MEMORY)
    return parts


def fetch_part(
    info: ContentInfo, span: PageSpan, take: Take, begins: Callable[[tuple[int, int]], None] | None = None
) -> Operation[None]:
    """Pass the text of a span to `take` as UTF-8, in order, cut at both ends. `begins` is called first,
    with the number of characters and LFs before the span. A span of bytes is whole pages."""
    if info.descriptor.kind == "bytes":
        yield from fetch(info, span.pages, _of_whole_pages(info, take))
        return
    left = len(span.pages)
    first = True

    def cut(run: list[bytes]) -> Operation[None]:
        nonlocal left, first
        left -= len(run)
        if left == 0:
            text = run[-1].decode("utf-8")
            run[-1] = text[: cut_tail(span, text)].encode("utf-8")
        if first:
            first = False
            # cut the end before the start: on a single page, offsets from the start stay valid
            text = run[0].decode("utf-8")
            skipped = cut_head(span, text)
            run[0] = text[skipped:].encode("utf-8")
            if begins:
                head = span.head
                begins((head.chars + skipped, head.newlines + text[:skipped].count("\n")))
        yield from take(run)

    yield from fetch(info, span.pages, cut)
