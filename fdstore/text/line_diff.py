"""The lines that differ between two texts, from a digest of each line, in bounded time.

Lines that occur once in both texts are anchors (Cohen's patience diff): the longest run of them that is in
order in both is kept, and the lines between two anchors are compared in the same way. Lines without an
anchor are compared by Myers' O(ND) algorithm, which finds the shortest edit. Both count their steps; after
`WORK` steps, the remaining lines are reported as replaced: a correct difference, but not the shortest.
`difflib` has no such bound: it is quadratic, and cubic for texts of few different lines.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

WORK = 10_000_000
"""The most comparisons of lines that are made: some seconds."""

MAX_EDITS = 1000
"""The most lines that are removed and added between two anchors; more count as replaced as a whole."""


class LineChange(NamedTuple):
    """Lines `first` to `last` (excluded) of the old text, from 0, that became `new_first` to `new_last` of
    the new one."""

    first: int
    last: int
    new_first: int
    new_last: int


class Hunk(NamedTuple):
    """Changes that are shown together, and the lines of both texts that are shown of them, from 0."""

    old: range
    new: range
    changes: list[LineChange]


def find_changes(old: Sequence[int], new: Sequence[int], work: int = WORK) -> list[LineChange]:
    """Return what differs between two sequences of digests, in order.

    >>> find_changes([1, 2, 3, 4], [1, 9, 3, 4])
    [LineChange(first=1, last=2, new_first=1, new_last=2)]
    """
    found: list[LineChange] = []
    left = [LineChange(0, len(old), 0, len(new))]
    while left:
        part = trim(old, new, left.pop())
        if part.first == part.last or part.new_first == part.new_last:
            if part.first < part.last or part.new_first < part.new_last:
                found.append(part)
            continue
        a, b = old[part.first : part.last], new[part.new_first : part.new_last]
        work -= len(a) + len(b)
        matches = _anchors(a, b) if work > 0 else []
        if not matches and work > 0:
            matches, work = _shortest_edit(a, b, work)
        if not matches:
            found.append(part)
            continue
        left += reversed(list(_between(part, matches)))
    return _joined(found)


def trim(old: Sequence[int], new: Sequence[int], part: LineChange) -> LineChange:
    """Return a part without the lines at its start and at its end that are equal."""
    first, last, new_first, new_last = part
    while first < last and new_first < new_last and old[first] == new[new_first]:
        first, new_first = first + 1, new_first + 1
    while first < last and new_first < new_last and old[last - 1] == new[new_last - 1]:
        last, new_last = last - 1, new_last - 1
    return LineChange(first, last, new_first, new_last)


def group_hunks(changes: Sequence[LineChange], lines: int, new_lines: int, context: int) -> Iterator[Hunk]:
    """Yield the hunks of texts with so many lines: changes with up to `context` lines around each.

    >>> [hunk.old for hunk in group_hunks([LineChange(4, 5, 4, 4), LineChange(20, 20, 19, 21)], 40, 41, 3)]
    [range(1, 8), range(17, 23)]
    """
    group: list[LineChange] = []
    for change in changes:
        if group and change.first - group[-1].last > 2 * context:
            yield _hunk(group, lines, new_lines, context)
            group = []
        group.append(change)
    if group:
        yield _hunk(group, lines, new_lines, context)


def _hunk(changes: list[LineChange], lines: int, new_lines: int, context: int) -> Hunk:
    first, last = changes[0], changes[-1]
    return Hunk(
        range(max(0, first.first - context), min(lines, last.last + context)),
        range(max(0, first.new_first - context), min(new_lines, last.new_last + context)),
        changes,
    )


def hunk_heading(hunk: Hunk, first_line: int = 1, new_first_line: int = 1) -> str:
    """Return the heading of a hunk in the unified format, for texts whose lines count from these.

    >>> hunk_heading(Hunk(range(1, 8), range(1, 7), []))
    '@@ -2,7 +2,6 @@'
    """
    return f"@@ -{_range(hunk.old, first_line)} +{_range(hunk.new, new_first_line)} @@"


def _range(lines: range, first_line: int) -> str:
    # an empty range is named by the line before it
    start = lines.start + first_line - (not lines)
    return str(start) if len(lines) == 1 else f"{start},{len(lines)}"


def _anchors(a: Sequence[int], b: Sequence[int]) -> list[tuple[int, int]]:
    """Return pairs of equal lines that occur once in both, in order in both: as many as possible."""
    counts, new_counts = Counter(a), Counter(b)
    place = {digest: at for at, digest in enumerate(b) if new_counts[digest] == 1}
    pairs = [(at, place[digest]) for at, digest in enumerate(a) if counts[digest] == 1 and digest in place]
    # the longest increasing subsequence of the places in b
    ends: list[int] = []
    chosen: list[int] = []
    before: list[int] = []
    for number, (_, at) in enumerate(pairs):
        length = bisect_left(ends, at)
        before.append(chosen[length - 1] if length else -1)
        ends[length : length + 1] = [at]
        chosen[length : length + 1] = [number]
    matches = []
    number = chosen[-1] if chosen else -1
    while number >= 0:
        matches.append(pairs[number])
        number = before[number]
    return matches[::-1]


def _shortest_edit(a: Sequence[int], b: Sequence[int], work: int) -> tuple[list[tuple[int, int]], int]:
    """Return the pairs of equal lines of the shortest edit, none if it is too long, and the work left."""
    reach = {1: 0}
    steps: list[dict[int, int]] = []
    for edits in range(min(MAX_EDITS, len(a) + len(b)) + 1):
        steps.append(reach.copy())
        work -= 2 * edits + 1
        if work <= 0:
            break
        for diagonal in range(-edits, edits + 1, 2):
            at = _step(reach, diagonal, edits)
            start = at
            while at < len(a) and at - diagonal < len(b) and a[at] == b[at - diagonal]:
                at += 1
            work -= at - start
            reach[diagonal] = at
            if at >= len(a) and at - diagonal >= len(b):
                return _backtrack(steps, len(a), len(b)), work
    return [], work


def _is_addition(reach: dict[int, int], diagonal: int, edits: int) -> bool:
    """Return whether the furthest path of this diagonal comes from adding a line of `b`, not from removing
    one of `a`."""
    return diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])


def _step(reach: dict[int, int], diagonal: int, edits: int) -> int:
    """Return the line of `a` at which the furthest path of this diagonal continues."""
    return reach[diagonal + 1] if _is_addition(reach, diagonal, edits) else reach[diagonal - 1] + 1


def _backtrack(steps: list[dict[int, int]], at: int, new_at: int) -> list[tuple[int, int]]:
    """Return the pairs of equal lines on the path to these ends."""
    matches = []
    for edits in range(len(steps) - 1, -1, -1):
        reach, diagonal = steps[edits], at - new_at
        start = _step(reach, diagonal, edits)
        while at > start:
            at, new_at = at - 1, new_at - 1
            matches.append((at, new_at))
        if _is_addition(reach, diagonal, edits):
            new_at -= 1
        else:
            at -= 1
    return matches[::-1]


def _between(part: LineChange, matches: list[tuple[int, int]]) -> Iterator[LineChange]:
    """Yield the parts between matches, whose lines count from the start of `part`."""
    first, new_first = part.first, part.new_first
    for at, new_at in matches:
        if (first, new_first) != (part.first + at, part.new_first + new_at):
            yield LineChange(first, part.first + at, new_first, part.new_first + new_at)
        first, new_first = part.first + at + 1, part.new_first + new_at + 1
    yield LineChange(first, part.last, new_first, part.new_last)


def _joined(changes: list[LineChange]) -> list[LineChange]:
    """Join changes between which no line is equal."""
    joined: list[LineChange] = []
    for change in changes:
        if joined and (joined[-1].last, joined[-1].new_last) == (change.first, change.new_first):
            change = LineChange(joined[-1].first, change.last, joined[-1].new_first, change.new_last)
            joined.pop()
        joined.append(change)
    return joined
