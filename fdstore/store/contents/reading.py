"""Read stored text: pages, lines, characters, or all of it.

The layout is optimized for reading one page: one round trip of that page's bytes, and no work that grows
with the content. Every other read is a span of pages (see `spans`).
"""

from __future__ import annotations

from io import StringIO
from typing import Any, Literal

from fdstore.errors import InvalidArgument, PageOutOfRange, TooLarge, quoted
from fdstore.model.records import Descriptor, Mode, Slice
from fdstore.store.content_info import ContentInfo
from fdstore.store.contents.extents import measure
from fdstore.store.contents.locating import (
    AHEAD_IN_MEMORY,
    PageSpan,
    collect,
    cut_head,
    cut_tail,
    fetch,
    locate,
)
from fdstore.store.contents.page_fields import joined
from fdstore.store.contents.resolving import (
    content_info,
    content_name,
    group_with,
    reads_content,
    resolve,
    retry_if_gone,
)
from fdstore.store.contents.returning import read_missing
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.record_format import UNREADABLE, damage
from fdstore.text.index import Group, group_of
from fdstore.text.paging import count_lines, page_end
from fdstore.text.selection import AnyPart, Part
from fdstore.wire.operation import Batch, Operation


def read(handle: ProcessHandle, fd: str, part: AnyPart | None, limit: int | None = None) -> Operation[Slice]:
    """Read a part of a content, all of it for None. One page is one round trip of that page's bytes.

    Raises `NotFound`, `PageOutOfRange`, `PositionOutOfRange`, and `TooLarge` when the part has more
    than `limit` characters; then at most `limit` characters and two pages have been fetched.
    """
    if part is None:
        return retry_if_gone(handle, fd, lambda: read_all(handle, fd, limit))
    if isinstance(part, Part) and part.mode == "page" and part.count == 1:
        return read_page(handle, fd, part.start, limit)
    return retry_if_gone(handle, fd, lambda: read_range(handle, fd, part, limit))


@reads_content
def read_range(handle: ProcessHandle, fd: str, part: AnyPart, limit: int | None = None) -> Operation[Slice]:
    """Read several pages, lines or characters. At least two round trips if the index is not cached."""
    info, span = yield from locate(handle, fd, part)
    if limit is not None:
        least = span.tail.chars - (yield from group_with(info, span.head.page)).after(span.head.page).chars
        if least > limit:
            _, extent = yield from measure(handle, fd, part)
            raise too_large(fd, extent.chars, limit)
    pages = yield from collect(info, span.pages)
    found = _cut(info.descriptor, span, pages)
    if limit is not None and len(found.text) > limit:
        raise too_large(fd, len(found.text), limit)
    return found


def too_large(fd: str, size: int, limit: int) -> TooLarge:
    """Return the error for a part of more than `limit` characters."""
    return TooLarge(
        f"this part of {fd}", size, limit, "read it in pages, search it, or extract it to a new descriptor"
    )


def check_limit(limit: object) -> int | None:
    """Return a valid limit of characters, None for none. Raises `InvalidArgument`."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        said = f"a whole number of characters, 0 or more, is needed, not {quoted(limit)}"
        raise InvalidArgument("max_chars", said)
    return limit


def build_page(
    handle: ProcessHandle,
    fd: str,
    known: tuple[ContentInfo, Group],
    number: int,
    fields: list[Any],
    limit: int | None,
) -> Slice | None:
    """Build a page from what `ProcessHandle.cached_page` found, and the fields `pages` of that content with
    this number: the fast path of most reads. Return None if the content was replaced; run `read_page` then.
    Raises `TooLarge`, `DamagedRecord`."""
    info, group = known
    data, created = fields
    if info.is_split:
        [data] = joined(data)
    if data is None or created != info.created:
        return None
    try:
        text = data.decode()
        place = group.at(number)
    except UNREADABLE as error:
        raise damage(content_name(handle, fd), error) from error
    if limit is not None and len(text) > limit:
        raise too_large(fd, len(text), limit)
    return _slice(info.descriptor, text, place, "page", number, 1, number)


@reads_content
def read_page(handle: ProcessHandle, fd: str, number: int, limit: int | None = None) -> Operation[Slice]:
    """Read one page. One round trip, whether or not the descriptor is cached."""
    first = group_of(number)
    info = handle.known(fd)
    data = created = None
    group: Group | None = None
    if info is not None:
        info.require_text()
    if info is not None and number <= info.descriptor.pages:
        # keep a reference: other threads that read the same content may evict the group
        group = info.groups.get(first)
        batch: Batch = [] if group else [("HGET", info.keys.index, first)]
        *value, data, created = yield [*batch, *info.pages.batch(number)]
        if info.is_split:
            [data] = joined(data)
        if created is None:
            info = None
        elif value and value[0] is not None:
            group = info.learn(first, value[0])
    if info is None:
        info, data = yield from resolve(handle, fd, page=number)
        info.require_text()
        created, group = info.created, info.groups.get(first)
    if number > info.descriptor.pages:
        raise PageOutOfRange(fd, number, info.descriptor.pages)
    if data is None:
        [data] = yield from read_missing(info, range(number, number + 1), created)
    info.check(created)
    group = group or (yield from group_with(info, number))
    text = data.decode()
    if limit is not None and len(text) > limit:
        raise too_large(fd, len(text), limit)
    return _slice(info.descriptor, text, group.at(number), "page", number, 1, number)


def first_page_of(descriptor: Descriptor, text: str) -> Slice:
    """Return the first page of a text in memory, which was stored as `descriptor`."""
    page = text[: page_end(text, 0, descriptor.page_size)]
    return _slice(descriptor, page, (0, 0, False, count_lines(page)), "page", 1, 1, 1)


@reads_content
def read_all(handle: ProcessHandle, fd: str, limit: int | None = None) -> Operation[Slice]:
    """Read the whole text. Raises `TooLarge` before any page is fetched."""
    info = yield from content_info(handle, fd)
    info.require_text()
    descriptor = info.descriptor
    if limit is not None and descriptor.chars > limit:
        raise too_large(fd, descriptor.chars, limit)
    # StringIO grows in place: first use of fresh memory dominates the cost of a large text
    whole = StringIO(newline="\n")  # no newline translation

    def take(run: list[bytes]) -> Operation[None]:
        whole.write(b"".join(run).decode("utf-8"))
        return
        yield  # makes this a generator

    yield from fetch(info, range(1, descriptor.pages + 1), take, AHEAD_IN_MEMORY)
    text, place = whole.getvalue(), (0, 0, False, descriptor.lines)
    if len(text) != descriptor.chars and descriptor.state == "sealed":
        raise ValueError(f"its pages have {len(text)} characters, not {descriptor.chars}")
    return _slice(descriptor, text, place, "page", 1, descriptor.pages, "all")


def _cut(descriptor: Descriptor, span: PageSpan, pages: list[bytes]) -> Slice:
    """Cut a span out of these pages. Lines are counted in the first and last page alone; the index has the
    other counts."""
    part, head, tail = span.part, span.head, span.tail
    if part.mode == "page":
        before_last, text = b"".join(pages[:-1]).decode("utf-8"), pages[-1].decode("utf-8")
        _check_length(span, before_last)
        text = before_last + text
        newlines = tail.newlines + pages[-1].count(b"\n") - head.newlines
        lines = newlines + bool(text and text[-1] != "\n")
        place = (head.newlines, head.chars, head.mid_line, lines)
        page = part.start if part.count == 1 else None
        return _slice(descriptor, text, place, "page", part.start, part.count, page)
    texts = [pages[0].decode("utf-8")]
    if len(pages) > 1:
        texts += [b"".join(pages[1:-1]).decode("utf-8"), pages[-1].decode("utf-8")]
        _check_length(span, *texts[:2])
    last = texts[-1] = texts[-1][: cut_tail(span, texts[-1])]
    skip = cut_head(span, texts[0])
    skipped, texts[0] = texts[0][:skip], texts[0][skip:]
    text = "".join(texts)
    chars = head.chars + skip
    if part.mode == "line":
        found = text.count("\n") + (text[-1:] not in ("", "\n"))
        if found != part.count:
            raise ValueError(f"its pages have {found} of {part.count} lines")
        return _slice(
            descriptor, text, (part.start - 1, chars, False, part.count), "line", part.start, part.count
        )
    if len(text) != part.count:
        raise ValueError(f"its pages have {len(text)} of {part.count} characters")
    mid_line = not skipped.endswith("\n") if skipped else head.mid_line
    before = head.newlines + skipped.count("\n")
    newlines = tail.newlines + last.count("\n") - before
    lines = newlines + bool(text and text[-1] != "\n")
    return _slice(descriptor, text, (before, chars, mid_line, lines), "char", part.start, part.count)


def _check_length(span: PageSpan, *texts: str) -> None:
    """Raise `ValueError` if the pages before the last one have another length than the index says."""
    length, expected = sum(map(len, texts)), span.tail.chars - span.head.chars
    if length != expected:
        raise ValueError(f"pages have {length} characters, not {expected}")


def _slice(
    descriptor: Descriptor,
    text: str,
    place: tuple[int, int, bool, int],
    mode: Mode,
    start: int,
    count: int,
    page: int | Literal["all"] | None = None,
) -> Slice:
    """Build the slice of a text from its `place` (see `Group.at`) and its start and count in units of
    `mode`."""
    newlines, chars, mid_line, lines = place
    last_char = chars + len(text)
    state = descriptor.state
    at_end = last_char >= descriptor.chars
    eof = at_end and state == "sealed"
    # positional: keyword arguments take as long as everything else done with a page
    return Slice(
        text,
        descriptor.fd,
        mode,
        page,
        start,
        count,
        descriptor.pages,
        f"{newlines + 1!s}-{newlines + lines!s}" if text else "0-0",  # lines
        descriptor.lines,
        f"{chars + 1!s}-{last_char!s}" if text else "0-0",  # chars
        descriptor.chars,
        mid_line and text != "",  # continued
        text != "" and text[-1] != "\n" and (not at_end or state == "open"),  # truncated
        state,
        eof,
        descriptor.exit_code,
        descriptor.chain if eof else None,
        descriptor.reason,
    )
