"""Reading stored text: pages, lines, characters, all of it.

Every part of a content is a `Stretch`: a run of whole pages, cut at its two ends. Finding it takes
the index alone; fetching it moves those pages and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fdstore.errors import NotFound, TooLarge
from fdstore.records import Descriptor, Slice
from fdstore.store.operation import Batch, Operation, Receive, Send
from fdstore.store.views import Namespace, Unit, View, afresh_if_gone, group_with, look, view_of
from fdstore.text.index import Group, Place, group_of
from fdstore.text.paging import count_lines
from fdstore.text.selection import Part, clamp

WINDOW_BYTES = 512_000
"""About how much one request of a long read asks for."""

AHEAD = 3
"""Requests on their way at once in a long read."""

Take = Callable[[list[bytes]], Operation[None]]
"""What is done with each run of pages of a long read."""


class Stretch(msgspec.Struct, frozen=True):
    """A part of a content in terms of pages: from a place in page `head.page` to a place in page
    `tail.page`. `head` and `tail` are the states at the starts of those pages."""

    part: Part
    head: Place
    tail: Place

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


def cut_head(stretch: Stretch, text: str) -> int:
    """The offset in the text of the first page where the stretch begins."""
    if stretch.part.mode == "line":
        return after_newline(text, stretch.part.start - 1 - stretch.head.newlines)
    if stretch.part.mode == "char":
        return stretch.part.start - 1 - stretch.head.chars
    return 0


def cut_tail(stretch: Stretch, text: str) -> int:
    """The offset in the text of the last page where the stretch ends."""
    if stretch.part.mode == "line":
        return after_newline(text, stretch.part.last - stretch.tail.newlines)
    if stretch.part.mode == "char":
        return stretch.part.last - stretch.tail.chars
    return len(text)


def total_of(descriptor: Descriptor, mode: str) -> int:
    """How many pages, lines or characters the content has."""
    return {"page": descriptor.pages, "line": descriptor.lines, "char": descriptor.chars}[mode]


def locate(space: Namespace, fd: str, wanted: Part) -> Operation[tuple[View, Stretch]]:
    """Finds a part of a content: no round trip when its index is known, one when not.

    Raises `NotFound`, `PageOutOfRange`, `PositionOutOfRange`.
    """
    if wanted.mode == "page":
        view = yield from view_of(space, fd)
        part = clamp(fd, wanted, view.descriptor.pages)
        head = (yield from group_with(view, part.start)).before(part.start)
        tail = (yield from group_with(view, part.last)).before(part.last)
        return view, Stretch(part, head, tail)

    unit: Unit = "newlines" if wanted.mode == "line" else "chars"
    # a line begins after the LF before it, a character at itself
    first = wanted.start - 1 if wanted.mode == "line" else wanted.start
    known = space.known(fd)
    found = _groups(known, unit, first, wanted) if known else None
    if known is None or found is None:
        known, _ = yield from look(space, fd, unit=unit, first=first, last=wanted.last)
        found = _groups(known, unit, first, wanted)
    part = clamp(fd, wanted, total_of(known.descriptor, wanted.mode))
    if found is None:
        raise NotFound(fd)
    head_group, tail_group = found
    if wanted.mode == "line":
        return known, Stretch(part, _line_start(head_group, first), _line_end(tail_group, part.last))
    head = head_group.before(head_group.page_of_char(part.start))
    tail = tail_group.before(tail_group.page_of_char(part.last))
    return known, Stretch(part, head, tail)


def clamped(space: Namespace, fd: str, wanted: Part) -> Operation[Part]:
    """`wanted`, cut at the end of the content."""
    view = yield from view_of(space, fd)
    return clamp(fd, wanted, total_of(view.descriptor, wanted.mode))


def _groups(view: View, unit: Unit, first: int, wanted: Part) -> tuple[Group, Group] | None:
    head, tail = view.group_at(unit, first), view.group_at(unit, wanted.last)
    return (head, tail) if head and tail else None


def _line_start(group: Group, newlines_before: int) -> Place:
    if newlines_before == 0:
        return group.start
    page = group.page_of_newline(newlines_before)
    after = group.after(page)
    # when the LF is the last character of its page, the line begins on the next one
    return after if after.newlines == newlines_before and not after.mid_line else group.before(page)


def _line_end(group: Group, newlines: int) -> Place:
    return group.before(group.page_of_newline(newlines))


def fetch(view: View, pages: range, take: Take) -> Operation[None]:
    """Hands the pages over in order, in runs of about `WINDOW_BYTES`, several requests at once. The
    last page of an open content comes from the view.

    Raises `NotFound` when the content has gone meanwhile.
    """
    descriptor = view.descriptor
    each = max(1, descriptor.bytes // max(descriptor.pages, 1))
    window = max(1, min(1000, WINDOW_BYTES // each))
    if view.last_page is not None and pages[-1] == descriptor.pages:
        if len(pages) > 1:
            yield from fetch(view, pages[:-1], take)
        yield from take([view.last_page])
        return
    runs = [pages[i : i + window] for i in range(0, len(pages), window)]

    def request(run: range) -> Batch:
        return [("HMGET", view.pages_key, *run)]

    def checked(found: list[bytes | None]) -> list[bytes]:
        present = [page for page in found if page is not None]
        if len(present) != len(found):
            raise NotFound(descriptor.fd)
        return present

    if len(runs) == 1:
        [found] = yield request(runs[0])
        yield from take(checked(found))
        return
    for run in runs[:AHEAD]:
        yield Send(request(run), "read")
    for i in range(len(runs)):
        [found] = yield Receive("read")
        if i + AHEAD < len(runs):
            yield Send(request(runs[i + AHEAD]), "read")
        yield from take(checked(found))


def collect(view: View, pages: range) -> Operation[list[bytes]]:
    """The pages, in memory."""
    parts: list[bytes] = []

    def take(run: list[bytes]) -> Operation[None]:
        parts.extend(run)
        return
        yield  # a generator that needs nothing

    yield from fetch(view, pages, take)
    return parts


def fetch_part(
    view: View, stretch: Stretch, take: Take, begins: Callable[[tuple[int, int]], None] | None = None
) -> Operation[None]:
    """Hands over the text of a stretch as UTF-8, in order, cut at both ends. `begins` is told how
    many characters and LFs come before it."""
    left = len(stretch.pages)
    first = True

    def cut(run: list[bytes]) -> Operation[None]:
        nonlocal left, first
        left -= len(run)
        if left == 0:
            text = run[-1].decode("utf-8")
            run[-1] = text[: cut_tail(stretch, text)].encode("utf-8")
        if first:
            first = False
            # the cut at the end comes first: on a single page it keeps offsets at the start right
            text = run[0].decode("utf-8")
            skipped = cut_head(stretch, text)
            run[0] = text[skipped:].encode("utf-8")
            if begins:
                head = stretch.head
                begins((head.chars + skipped, head.newlines + text[:skipped].count("\n")))
        yield from take(run)

    yield from fetch(view, stretch.pages, cut)


def read(space: Namespace, fd: str, wanted: Part | None, limit: int | None = None) -> Operation[Slice]:
    """A part of a content, all of it for None. One page is one round trip of that page's bytes.

    Raises `NotFound`, `PageOutOfRange`, `PositionOutOfRange`, and `TooLarge` when the part has more
    than `limit` characters; then at most `limit` characters and two pages were fetched.
    """
    if wanted is None:
        return (yield from afresh_if_gone(space, fd, lambda: read_all(space, fd, limit)))
    if wanted.mode == "page" and wanted.count == 1:
        return (yield from read_page(space, fd, wanted.start, limit))
    return (yield from afresh_if_gone(space, fd, lambda: read_range(space, fd, wanted, limit)))


def read_range(space: Namespace, fd: str, wanted: Part, limit: int | None = None) -> Operation[Slice]:
    """Several pages, lines or characters. Two round trips at least for a descriptor not met before."""
    view, stretch = yield from locate(space, fd, wanted)
    if limit is not None:
        least = (
            stretch.tail.chars
            - (yield from group_with(view, stretch.head.page)).after(stretch.head.page).chars
        )
        if least > limit:
            raise too_large(fd, least, limit)
    pages = yield from collect(view, stretch.pages)
    made = _slice(view.descriptor, stretch, pages)
    if limit is not None and len(made.text) > limit:
        raise too_large(fd, len(made.text), limit)
    return made


def too_large(fd: str, size: int, limit: int) -> TooLarge:
    return TooLarge(
        f"this part of {fd}", size, limit, "read it in pages, search it, or extract it to a new descriptor"
    )


def read_page(space: Namespace, fd: str, number: int, limit: int | None = None) -> Operation[Slice]:
    """One page. One round trip, whether the descriptor is known or not."""
    view = space.known(fd)
    data: bytes | None = None
    if view is not None:
        clamp(fd, Part("page", number, 1), view.descriptor.pages)
        group = view.groups.get(group_of(number))
        if group is not None:
            [data] = yield [("HGET", view.pages_key, number)]
        else:
            data, value = yield [
                ("HGET", view.pages_key, number),
                ("HGET", view.index_key, group_of(number)),
            ]
            if value is not None:
                group = view.learn(group_of(number), value)
        if data is None:
            space.forget(fd)
            view = None
    if view is None:
        view, data = yield from look(space, fd, page=number)
        clamp(fd, Part("page", number, 1), view.descriptor.pages)
        group = view.groups.get(group_of(number))
    if data is None or group is None:
        raise NotFound(fd)
    place = group.before(number)
    made = _slice(view.descriptor, Stretch(Part("page", number, 1), place, place), [data])
    if limit is not None and len(made.text) > limit:
        raise too_large(fd, len(made.text), limit)
    return made


def read_all(space: Namespace, fd: str, limit: int | None = None) -> Operation[Slice]:
    """The whole text. Raises `TooLarge` before anything is fetched."""
    view = yield from view_of(space, fd)
    descriptor = view.descriptor
    if limit is not None and descriptor.chars > limit:
        raise too_large(fd, descriptor.chars, limit)
    start = Place(1, 0, 0, mid_line=False)
    end = Place(descriptor.pages, 0, 0, mid_line=False)
    pages = yield from collect(view, range(1, descriptor.pages + 1))
    made = _slice(descriptor, Stretch(Part("page", 1, descriptor.pages), start, end), pages)
    return msgspec.structs.replace(made, page="all")


def _slice(descriptor: Descriptor, stretch: Stretch, pages: list[bytes]) -> Slice:
    part, head = stretch.part, stretch.head
    if part.mode == "page":
        skipped_chars, mid_line = 0, head.mid_line
        text = (pages[0] if len(pages) == 1 else b"".join(pages)).decode("utf-8")
        newlines_before = head.newlines
    else:
        texts = [pages[0].decode("utf-8")]
        if len(pages) > 1:
            texts += [b"".join(pages[1:-1]).decode("utf-8"), pages[-1].decode("utf-8")]
        texts[-1] = texts[-1][: cut_tail(stretch, texts[-1])]
        skipped_chars = cut_head(stretch, texts[0])
        skipped, texts[0] = texts[0][:skipped_chars], texts[0][skipped_chars:]
        text = "".join(texts)
        mid_line = not skipped.endswith("\n") if skipped else head.mid_line
        newlines_before = head.newlines + skipped.count("\n")
    before = head.chars + skipped_chars
    last_char = before + len(text)
    ends_line = text.endswith("\n")
    touched = count_lines(text.count("\n"), len(text), ends_line)
    at_end = last_char >= descriptor.chars
    return Slice(
        text=text,
        fd=descriptor.fd,
        mode=part.mode,
        page=part.start if part.mode == "page" and part.count == 1 else None,
        start=part.start,
        count=part.count,
        pages=descriptor.pages,
        lines=f"{newlines_before + 1}-{newlines_before + touched}" if text else "0-0",
        total_lines=descriptor.lines,
        chars=f"{before + 1}-{last_char}" if text else "0-0",
        total_chars=descriptor.chars,
        continued=mid_line and bool(text),
        truncated=bool(text) and not ends_line and not (at_end and descriptor.state != "open"),
        state=descriptor.state,
        eof=at_end and descriptor.state == "sealed",
        exit_code=descriptor.exit_code,
    )
