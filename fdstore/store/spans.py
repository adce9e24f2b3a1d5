"""Finding a part of a content, and fetching it.

Every part is a `Span`: a run of whole pages, cut at its two ends. Finding it takes the index alone;
fetching it moves those pages and nothing else, in requests that overlap when there are many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from fdstore.errors import NotFound
from fdstore.records import Descriptor
from fdstore.store.content_info import ContentInfo, ProcessHandle, Unit, content_info, group_with, resolve
from fdstore.text.index import Group, TextPosition
from fdstore.text.selection import Part, clamp
from fdstore.wire.operation import Batch, Operation, Receive, Send

WINDOW_BYTES = 256_000
"""About how much one request of a long read asks for."""

AHEAD = 3
"""Requests on their way at once in a long read."""

LOOKS = 3
"""Times that a part is looked up before it counts as missing: other threads that read the same content may
have pushed what was learned of it out of memory."""

Take = Callable[[list[bytes]], Operation[None]]
"""What is done with each run of pages of a long read."""


class Span(msgspec.Struct, frozen=True):
    """A part of a content in terms of pages: from a place in page `head.page` to a place in page
    `tail.page`. `head` and `tail` are the states at the starts of those pages."""

    part: Part
    head: TextPosition
    tail: TextPosition

    @property
    def pages(self) -> range:
        return range(self.head.page, self.tail.page + 1)


def after_newline(text: str, number: int) -> int:
    """The offset just after the LF with this number in `text`; its end if there are fewer.

    >>> after_newline("a\\nb\\nc", 2), after_newline("a\\nb\\nc", 0), after_newline("a", 1)
    (4, 0, 1)
    """
    if number <= 0:
        return 0
    pieces = text.split("\n", number)
    return len(text) - len(pieces[-1]) if len(pieces) > number else len(text)


def cut_head(span: Span, text: str) -> int:
    """The offset in the text of the first page where the stretch begins."""
    if span.part.mode == "line":
        return after_newline(text, span.part.start - 1 - span.head.newlines)
    if span.part.mode == "char":
        return span.part.start - 1 - span.head.chars
    return 0


def cut_tail(span: Span, text: str) -> int:
    """The offset in the text of the last page where the stretch ends."""
    if span.part.mode == "line":
        return after_newline(text, span.part.last - span.tail.newlines)
    if span.part.mode == "char":
        return span.part.last - span.tail.chars
    return len(text)


def total_of(descriptor: Descriptor, mode: str) -> int:
    """How many pages, lines or characters the content has."""
    return {"page": descriptor.pages, "line": descriptor.lines, "char": descriptor.chars}[mode]


def locate(handle: ProcessHandle, fd: str, wanted: Part) -> Operation[tuple[ContentInfo, Span]]:
    """Finds a part of a content: no round trip when its index is known, one when not.

    Raises `NotFound`, `PageOutOfRange`, `PositionOutOfRange`.
    """
    if wanted.mode == "page":
        view = yield from content_info(handle, fd)
        part = clamp(fd, wanted, view.descriptor.pages)
        head = (yield from group_with(view, part.start)).before(part.start)
        tail = (yield from group_with(view, part.last)).before(part.last)
        return view, Span(part, head, tail)

    unit: Unit = "newlines" if wanted.mode == "line" else "chars"
    # a line begins after the LF before it, a character at itself
    first = wanted.start - 1 if wanted.mode == "line" else wanted.start
    known = handle.known(fd)
    found = _groups(known, unit, first, wanted) if known else None
    for _ in range(LOOKS):
        if known is None or found is None:
            known, _ = yield from resolve(handle, fd, unit=unit, first=first, last=wanted.last)
            found = _groups(known, unit, first, wanted)
    assert known is not None
    part = clamp(fd, wanted, total_of(known.descriptor, wanted.mode))
    if found is None:
        raise NotFound(fd)
    head_group, tail_group = found
    if wanted.mode == "line":
        return known, Span(part, _line_start(head_group, first), _line_end(tail_group, part.last))
    head = head_group.before(head_group.page_of_char(part.start))
    tail = tail_group.before(tail_group.page_of_char(part.last))
    return known, Span(part, head, tail)


def clamp_span(handle: ProcessHandle, fd: str, wanted: Part) -> Operation[Part]:
    """`wanted`, cut at the end of the content."""
    view = yield from content_info(handle, fd)
    return clamp(fd, wanted, total_of(view.descriptor, wanted.mode))


def _groups(view: ContentInfo, unit: Unit, first: int, wanted: Part) -> tuple[Group, Group] | None:
    head = view.group_at(unit, first)
    if head is None:
        return None
    tail = head if wanted.last <= getattr(head.end, unit) else view.group_at(unit, wanted.last)
    return (head, tail) if tail else None


def _line_start(group: Group, newlines_before: int) -> TextPosition:
    if newlines_before == 0:
        return group.start
    page = group.page_of_newline(newlines_before)
    after = group.after(page)
    # when the LF is the last character of its page, the line begins on the next one
    return after if after.newlines == newlines_before and not after.mid_line else group.before(page)


def _line_end(group: Group, newlines: int) -> TextPosition:
    return group.before(group.page_of_newline(newlines))


def window_of(descriptor: Descriptor) -> int:
    """How many pages one request of a long read asks for."""
    each = max(1, descriptor.bytes // max(descriptor.pages, 1))
    return max(1, min(1000, WINDOW_BYTES // each))


def request(view: ContentInfo, run: range) -> Batch:
    return [("HMGET", view.keys.pages, *run), view.proof]


def require_pages(view: ContentInfo, replies: list[Any]) -> list[bytes]:
    """The pages in the replies to a `request`. Raises `NotFound` when the content has gone meanwhile,
    `StoreLostData` when it is another one or not whole."""
    found, created = replies
    view.check(created, complete=None not in found)
    return cast("list[bytes]", found)


def fetch(view: ContentInfo, pages: range, take: Take) -> Operation[None]:
    """Hands the pages over in order, in runs of about `WINDOW_BYTES`, several requests at once. The
    last page of an open content comes from the view.

    Raises `NotFound` when the content has gone meanwhile.
    """
    if view.last_page is not None and pages[-1] == view.descriptor.pages:
        if len(pages) > 1:
            yield from fetch(view, pages[:-1], take)
        yield from take([view.last_page])
        return
    window = window_of(view.descriptor)
    if len(pages) <= window:
        yield from take(require_pages(view, (yield request(view, pages))))
        return
    # never a list of all: how many pages there are is what a record says
    starts = range(0, len(pages), window)
    for i in starts[:AHEAD]:
        yield Send(request(view, pages[i : i + window]), "read")
    for i in starts:
        found = yield Receive("read")
        later = i + AHEAD * window
        if later < len(pages):
            yield Send(request(view, pages[later : later + window]), "read")
        yield from take(require_pages(view, found))


def collect(view: ContentInfo, pages: range) -> Operation[list[bytes]]:
    """The pages, in memory."""
    if view.last_page is None and len(pages) <= window_of(view.descriptor):
        return require_pages(view, (yield request(view, pages)))
    parts: list[bytes] = []

    def take(run: list[bytes]) -> Operation[None]:
        parts.extend(run)
        return
        yield  # a generator that needs nothing

    yield from fetch(view, pages, take)
    return parts


def fetch_part(
    view: ContentInfo, span: Span, take: Take, begins: Callable[[tuple[int, int]], None] | None = None
) -> Operation[None]:
    """Hands over the text of a stretch as UTF-8, in order, cut at both ends. `begins` is told how
    many characters and LFs come before it."""
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
            # the cut at the end comes first: on a single page it keeps offsets at the start right
            text = run[0].decode("utf-8")
            skipped = cut_head(span, text)
            run[0] = text[skipped:].encode("utf-8")
            if begins:
                head = span.head
                begins((head.chars + skipped, head.newlines + text[:skipped].count("\n")))
        yield from take(run)

    yield from fetch(view, span.pages, cut)
