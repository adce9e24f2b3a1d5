"""The parts of its descriptors that an agent has read, computed from its conversation.

Each result of `read_fd` names in its opening tag what it showed: pages, or characters of lines. Previews,
searches and extractions show no page and do not count. Names are left out, since they may mean another
content by now; numbers are never reused. Pure, and bounded by the number of results: parts are intervals,
however large their numbers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from fdstore.elements.shown_result import ShownResult
from fdstore.text.numbers import MAX_INTEGER

Interval = tuple[int, int]
"""The first and the last number of a run, 1-based."""

_OPENING = re.compile(r'<fd_content fd="(fd:[1-9][0-9]{0,15})"([^>]*)>')
_ATTRIBUTE = re.compile(r' ([a-z_]+)="([^"]*)"')
_RANGE = re.compile(r"([1-9][0-9]{0,15})-([1-9][0-9]{0,15})")


class ReadParts(msgspec.Struct, frozen=True):
    """The parts read of one descriptor: whole pages, and characters whose pages the results do not tell.
    Sorted intervals that neither overlap nor touch."""

    pages: tuple[Interval, ...] = ()
    chars: tuple[Interval, ...] = ()


def coverage(results: Iterable[ShownResult], shown_whole: Iterable[str] = ()) -> dict[str, ReadParts]:
    """Return what was read of each descriptor, by its id. `shown_whole` are further elements that showed a
    text, such as those of the first prompt.

    >>> shown = '<fd_content fd="fd:1" page="3" pages="9" lines="20-29" chars="200-299">'
    >>> coverage([ShownResult("turn1:a", 1, "read_fd", {"fd": "fd:1", "start": 3}, shown)])
    {'fd:1': ReadParts(pages=((3, 3),), chars=())}
    """
    texts = [
        result.content if isinstance(result.content, str) else ""
        for result in results
        if result.tool == "read_fd" and not result.is_error
    ]
    pages: defaultdict[str, list[Interval]] = defaultdict(list)
    chars: defaultdict[str, list[Interval]] = defaultdict(list)
    for text in (*texts, *shown_whole):
        opening = _OPENING.match(text)
        if opening is None:
            continue
        fd, attributes = opening[1], dict(_ATTRIBUTE.findall(opening[2]))
        if (run := _pages(attributes)) is not None:
            pages[fd].append(run)
        elif (run := _range(attributes.get("chars", ""))) is not None:
            chars[fd].append(run)
    return {fd: ReadParts(merge(pages[fd]), merge(chars[fd])) for fd in sorted({*pages, *chars})}


def _pages(attributes: dict[str, str]) -> Interval | None:
    """Return the pages that an `fd_content` shows; None if it shows lines or characters of several."""
    total, page = _number(attributes.get("pages", "")), attributes.get("page", "")
    if page == "all" or total == 1:
        return (1, total) if total else None
    if number := _number(page):
        return number, number
    first, count = _number(attributes.get("start", "")), _number(attributes.get("count", ""))
    return (first, first + count - 1) if attributes.get("mode") == "page" and first and count else None


def _number(text: str) -> int:
    """Parse a number from 1; 0 if it is none."""
    return int(text) if len(text) <= 16 and text.isascii() and text.isdecimal() else 0


def _range(text: str) -> Interval | None:
    found = _RANGE.fullmatch(text)
    return None if found is None or int(found[1]) > int(found[2]) else (int(found[1]), int(found[2]))


def merge(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Return the same numbers as sorted intervals that neither overlap nor touch.

    >>> merge([(5, 6), (1, 2), (3, 3), (6, 9)])
    ((1, 3), (5, 9))
    """
    merged: list[Interval] = []
    for first, last in sorted(intervals):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return tuple(merged)


def count_in(intervals: Sequence[Interval], most: int = MAX_INTEGER) -> int:
    """Return how many numbers from 1 to `most` are in these intervals."""
    return sum(max(0, min(last, most) - first + 1) for first, last in intervals)
