"""The parts of its descriptors that an agent has read, computed from the facts of its results.

Parts that were shown count; previews, searches and extractions show no page and do not. Names are left out,
since they may mean another content by now; numbers are never reused. Pure, and bounded by the number of
results: parts are intervals, however large their numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from fdstore.elements.facts import ResultFacts
from fdstore.elements.kinds import Interval
from fdstore.text.numbers import MAX_INTEGER


class ReadParts(msgspec.Struct, frozen=True):
    """The parts read of one descriptor: whole pages, and characters whose pages the results do not tell.
    Sorted intervals that neither overlap nor touch."""

    pages: tuple[Interval, ...] = ()
    chars: tuple[Interval, ...] = ()


def coverage(results: Iterable[ResultFacts]) -> dict[str, ReadParts]:
    """Return what was read of each descriptor, by its id.

    >>> from fdstore.elements.kinds import FdContent
    >>> coverage([ResultFacts(shown=(FdContent(fd="fd:1", page=3, pages=9),))])
    {'fd:1': ReadParts(pages=((3, 3),), chars=())}
    """
    pages: defaultdict[str, list[Interval]] = defaultdict(list)
    chars: defaultdict[str, list[Interval]] = defaultdict(list)
    for part in (part for facts in results for part in facts.shown):
        if not part.fd.startswith("fd:"):
            continue
        if (run := part.whole_pages) is not None:
            pages[part.fd].append(run)
        elif part.char_range is not None:
            chars[part.fd].append(part.char_range)
    return {fd: ReadParts(merge(pages[fd]), merge(chars[fd])) for fd in sorted({*pages, *chars})}


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
