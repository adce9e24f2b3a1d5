"""Reading stored text: pages, lines, characters, all of it.

One page is the case that everything is shaped for: one round trip of that page's bytes, and no work
beside it that grows with the content. Everything else is a stretch of pages (see `stretches`).
"""

from __future__ import annotations

from io import StringIO

import msgspec

from fdstore.errors import NotFound, PageOutOfRange, TooLarge
from fdstore.records import Descriptor, Slice
from fdstore.store.operation import Operation
from fdstore.store.stretches import Stretch, collect, cut_head, cut_tail, fetch, locate
from fdstore.store.views import Namespace, afresh_if_gone, group_with, look, view_of
from fdstore.text.index import Place, group_of
from fdstore.text.paging import count_lines, newlines_in
from fdstore.text.selection import Part


def read(space: Namespace, fd: str, wanted: Part | None, limit: int | None = None) -> Operation[Slice]:
    """A part of a content, all of it for None. One page is one round trip of that page's bytes.

    Raises `NotFound`, `PageOutOfRange`, `PositionOutOfRange`, and `TooLarge` when the part has more
    than `limit` characters; then at most `limit` characters and two pages were fetched.
    """
    if wanted is None:
        return afresh_if_gone(space, fd, lambda: read_all(space, fd, limit))
    if wanted.mode == "page" and wanted.count == 1:
        return read_page(space, fd, wanted.start, limit)
    return afresh_if_gone(space, fd, lambda: read_range(space, fd, wanted, limit))


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
    made = _cut(view.descriptor, stretch, pages)
    if limit is not None and len(made.text) > limit:
        raise too_large(fd, len(made.text), limit)
    return made


def too_large(fd: str, size: int, limit: int) -> TooLarge:
    return TooLarge(
        f"this part of {fd}", size, limit, "read it in pages, search it, or extract it to a new descriptor"
    )


def read_page(space: Namespace, fd: str, number: int, limit: int | None = None) -> Operation[Slice]:
    """One page. One round trip, whether the descriptor is known or not."""
    part = Part("page", number, 1)
    first = group_of(number)
    view = space.known(fd)
    data: bytes | None = None
    if view is not None:
        if number > view.descriptor.pages:
            raise PageOutOfRange(fd, number, view.descriptor.pages)
        group = view.groups.get(first)
        if group is not None:
            [data] = yield [("HGET", view.pages_key, number)]
        else:
            data, value = yield [("HGET", view.pages_key, number), ("HGET", view.index_key, first)]
            if value is not None:
                group = view.learn(first, value)
        if data is None:
            space.forget(fd)
            view = None
    if view is None:
        view, data = yield from look(space, fd, page=number)
        if number > view.descriptor.pages:
            raise PageOutOfRange(fd, number, view.descriptor.pages)
        group = view.groups.get(first)
    if data is None or group is None:
        raise NotFound(fd)
    text = data.decode("utf-8")
    if limit is not None and len(text) > limit:
        raise too_large(fd, len(text), limit)
    begin, lines = group.at(number)
    return _slice(view.descriptor, part, text, begin, lines)


def read_all(space: Namespace, fd: str, limit: int | None = None) -> Operation[Slice]:
    """The whole text. Raises `TooLarge` before anything is fetched."""
    view = yield from view_of(space, fd)
    descriptor = view.descriptor
    if limit is not None and descriptor.chars > limit:
        raise too_large(fd, descriptor.chars, limit)
    # grows in place: memory that was never touched before is what a large text costs most
    whole = StringIO(newline="\n")  # which translates nothing

    def take(run: list[bytes]) -> Operation[None]:
        whole.write(b"".join(run).decode("utf-8"))
        return
        yield  # a generator that needs nothing

    yield from fetch(view, range(1, descriptor.pages + 1), take)
    text = whole.getvalue()
    part, begin = Part("page", 1, descriptor.pages), Place(1, 0, 0, mid_line=False)
    return msgspec.structs.replace(_slice(descriptor, part, text, begin, descriptor.lines), page="all")


def _cut(descriptor: Descriptor, stretch: Stretch, pages: list[bytes]) -> Slice:
    """The slice that is a stretch of these pages. Lines are counted in the first and the last page
    alone; the index knows the rest."""
    part, head, tail = stretch.part, stretch.head, stretch.tail
    if part.mode == "page":
        newlines = tail.newlines + newlines_in(pages[-1]) - head.newlines
        text = b"".join(pages).decode("utf-8")
        return _slice(descriptor, part, text, head, count_lines(newlines, len(text), text.endswith("\n")))
    texts = [pages[0].decode("utf-8")]
    if len(pages) > 1:
        texts += [b"".join(pages[1:-1]).decode("utf-8"), pages[-1].decode("utf-8")]
    last = texts[-1] = texts[-1][: cut_tail(stretch, texts[-1])]
    skip = cut_head(stretch, texts[0])
    skipped, texts[0] = texts[0][:skip], texts[0][skip:]
    text = "".join(texts)
    chars = head.chars + skip
    if part.mode == "line":
        begin = Place(head.page, part.start - 1, chars, mid_line=False)
        return _slice(descriptor, part, text, begin, part.count)
    mid_line = not skipped.endswith("\n") if skipped else head.mid_line
    begin = Place(head.page, head.newlines + skipped.count("\n"), chars, mid_line)
    newlines = tail.newlines + last.count("\n") - begin.newlines
    return _slice(descriptor, part, text, begin, count_lines(newlines, len(text), text.endswith("\n")))


def _slice(descriptor: Descriptor, part: Part, text: str, begin: Place, lines: int) -> Slice:
    """A text that was cut, with where it `begin`s and how many lines it touches."""
    last_char = begin.chars + len(text)
    at_end = last_char >= descriptor.chars
    final = at_end and descriptor.state != "open"
    eof = at_end and descriptor.state == "sealed"
    # by position: the same by name takes as long as all else that is done with a page
    return Slice(
        text,
        descriptor.fd,
        part.mode,
        part.start if part.count == 1 and part.mode == "page" else None,  # page
        part.start,
        part.count,
        descriptor.pages,
        f"{begin.newlines + 1}-{begin.newlines + lines}" if text else "0-0",  # lines
        descriptor.lines,
        f"{begin.chars + 1}-{last_char}" if text else "0-0",  # chars
        descriptor.chars,
        begin.mid_line and bool(text),  # continued
        bool(text) and not final and not text.endswith("\n"),  # truncated
        descriptor.state,
        eof,
        descriptor.exit_code,
        descriptor.chain if eof else None,
        descriptor.reason,
    )
