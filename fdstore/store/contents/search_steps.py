"""Search a content in steps of bounded work, for screens that show hits as they are found.

A step searches about `STEP_BYTES` from a character on and says where the next one begins, so that a search of
a gigabyte can be shown while it runs, and stops when the caller requests no further step. A step ends at the
end of a page that ends a line: pages end inside a line only if the line is longer than a page. A line that is
longer than a whole step is searched in pieces that overlap by a page.
"""

from __future__ import annotations

from fdstore.model.records import Hit, Record
from fdstore.store.content_info import ContentInfo
from fdstore.store.contents.locating import locate
from fdstore.store.contents.resolving import group_with, reads_content, retry_if_gone
from fdstore.store.contents.searching import search
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.selection import Part
from fdstore.wire.operation import Operation

STEP_BYTES = 8_000_000
"""Approximate number of bytes that one step searches."""


class SearchStep(Record, frozen=True, kw_only=True):
    """The hits of one step. `next_char` is where the next step begins, None after the last one. `searched`
    of `total` characters of the content lie before it."""

    hits: tuple[Hit, ...]
    next_char: int | None
    searched: int
    total: int


def search_step(
    handle: ProcessHandle,
    fd: str,
    pattern: str,
    start: int = 1,
    *,
    context: int = 0,
    max_matches: int = 50,
    ignore_case: bool = False,
) -> Operation[SearchStep]:
    """Search from character `start` on, in about `STEP_BYTES`, up to `max_matches` hits. A few round trips
    and one read of the part.

    Raises `InvalidArgument`, `NotFound`, `NotText`, `PositionOutOfRange`.
    """

    def attempt() -> Operation[SearchStep]:
        info, last, follows = yield from _bounds(handle, fd, start)
        total = info.descriptor.chars
        # the last page may have grown since: the part ends where it ended then
        part = Part("char", start, max(1, last - start + 1))
        found = yield from search(
            handle, fd, part, pattern, context=context, max_matches=max_matches, ignore_case=ignore_case
        )
        if found.matches > found.shown and found.hits:
            hit = found.hits[-1]
            after = hit.line_start + sum(hit.left_out) + len(hit.text) + 1
            return SearchStep(hits=found.hits, next_char=after, searched=after - 1, total=total)
        return SearchStep(hits=found.hits, next_char=follows, searched=last, total=total)

    return retry_if_gone(handle, fd, attempt)


@reads_content
def _bounds(handle: ProcessHandle, fd: str, start: int) -> Operation[tuple[ContentInfo, int, int | None]]:
    """Return the content, the last character of the step from `start` on, and where the next begins."""
    info, span = yield from locate(handle, fd, Part("char", start, 1))
    d, first = info.descriptor, span.head.page
    each = max(1, d.bytes // max(d.pages, 1))
    furthest = first + max(1, STEP_BYTES // each)
    if furthest >= d.pages:
        return info, d.chars, None
    for page in range(furthest, first, -1):
        end = (yield from group_with(info, page)).after(page)
        if not end.mid_line:
            return info, end.chars, end.chars + 1
    group = yield from group_with(info, furthest)
    return info, group.after(furthest).chars, group.before(furthest).chars + 1
