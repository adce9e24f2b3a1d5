"""What a preview is made from: the beginning and the end of a text, and how long it is.

    |<------ head ------>|..........................|<---- tail ---->|
    1: first             n:                      m: |          lines: last

Nothing between the two is looked at, so the cost does not depend on the length of the text. Only whole lines
are used as lines; the number of each is known, because the head begins with line 1 and the tail ends with the
last one. A text that fits is looked at whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msgspec.structs import replace

from fdstore.records import Record
from fdstore.text.layout import show_controls
from fdstore.text.paging import count_lines

T = TypeVar("T")

WHOLE_CHARS = 60_000
"""A text in memory that is not longer than this is looked at whole, if it has not too many lines."""

HEAD_CHARS = 24_000
"""How much of the beginning is looked at."""

TAIL_CHARS = 12_000
"""How much of the end is looked at."""

MAX_LINES = 600
"""How many lines of either are looked at."""

MORE_CHARS = 400_000
"""How much of the beginning of a text in memory is looked at by kinds that need little time for a line."""

LINE_CHARS = 160
"""How much of a line is shown."""


class Sample(Record, frozen=True, kw_only=True):
    """The beginning and the end of a text of `chars` characters and `total_lines` lines.

    head    the beginning; all of the text if `whole`
    more    the same, or more of it
    first   the whole lines at the beginning, without LF
    last    those at the end that are not in `first`; the number of the first of them is `last_number`
    """

    head: str
    more: str
    whole: bool
    chars: int
    total_lines: int
    first: list[str]
    last: list[str]
    last_number: int

    @property
    def all_lines(self) -> bool:
        """Whether `first` and `last` are all lines of the text."""
        return len(self.first) + len(self.last) == self.total_lines

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Yield the lines of `first` and `last` with their numbers."""
        yield from enumerate(self.first, 1)
        yield from enumerate(self.last, self.last_number)

    def range_of_lines(self) -> str:
        """Return the lines of `first` and `last` for display."""
        if self.all_lines:
            return "all"
        ranges = [(1, len(self.first)), (self.last_number, self.total_lines)]
        shown = [f"{a}-{b}" for a, b in ranges if a <= b]
        return f"lines {' and '.join(shown)}"

    def more_lines(self, limit: int) -> list[str]:
        """Return at most `limit` whole lines of the beginning, those of `first` and more."""
        lines = self.more.split("\n", limit)
        is_cut = len(lines) > limit or len(self.more) < self.chars
        if is_cut or not lines[-1]:
            lines.pop()
        return lines

    def range_of_first(self, count: int) -> str:
        """Return the first `count` lines for display."""
        return "all" if count == self.total_lines else f"lines 1-{count}"


def sample_text(text: str, lines: int | None = None) -> Sample:
    """Return the sample of a text that is in memory, and has this many lines (default: count them)."""
    if lines is None:
        lines = count_lines(text.count("\n"), len(text), text.endswith("\n"))
    if len(text) <= WHOLE_CHARS:
        return sample_ends(text, "", len(text), lines)
    # one character more, to see whether it begins a line
    sample = sample_ends(text[:HEAD_CHARS], text[-TAIL_CHARS - 1 :], len(text), lines)
    return replace(sample, more=text[:MORE_CHARS])


def sample_ends(head: str, tail: str, chars: int, lines: int) -> Sample:
    """Return the sample of a text by its beginning and its end, which may overlap. The first line of `tail`
    counts as cut; it is no line of the sample."""
    whole = len(head) >= chars
    if whole:
        first = head.split("\n", 2 * MAX_LINES)
        if len(first) <= 2 * MAX_LINES:
            if not first[-1]:
                first.pop()
            tail = ""
        else:
            first, tail = first[:MAX_LINES], head[-TAIL_CHARS - 1 :]
    else:
        first = head.split("\n", MAX_LINES)[:-1]
    last = tail.removesuffix("\n").rsplit("\n", MAX_LINES)[1:]
    last = last[max(0, len(first) + len(last) - lines) :]
    return Sample(
        head=head,
        more=head,
        whole=whole,
        chars=chars,
        total_lines=lines,
        first=first,
        last=last,
        last_number=lines - len(last) + 1,
    )


class Outline(Record, frozen=True, kw_only=True):
    """A preview: its `kind`, what part of the text was looked at (`of`), its lines, and how many characters
    of the end are to be shown with it."""

    kind: str
    of: str
    lines: list[str]
    tail_chars: int = 0


def excerpt(line: str, limit: int = LINE_CHARS) -> str:
    r"""Return a line for display: of a long one the beginning, control characters visible.

    >>> excerpt("\x1b[31mred\r"), excerpt("a" * 9, 4)
    ('\\u{1b}[31mred\\u{d}', 'aaaa... (5 characters more)')
    """
    if len(line) <= limit:
        return show_controls(line, keep="\t")
    return f"{show_controls(line[:limit], keep=chr(9))}... ({len(line) - limit} characters more)"


def counted(count: int, noun: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "file"), counted(2, "file")
    ('1 file', '2 files')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def numbered_excerpt(number: int, line: str) -> str:
    """Return a line with its number, as grep prints it.

    >>> numbered_excerpt(7, "made")
    '7:made'
    """
    return f"{number}:{excerpt(line)}"


def first_and_last(found: Sequence[T], count: int, what: str, show: Callable[[T], str] = str) -> list[str]:
    """Return what was found as `show` shows it; of more than `count` the first and the last, and between them
    how many are left out.

    >>> first_and_last(["1:a", "2:b", "3:c", "4:d"], 2, "errors")
    ['1:a', '-- 2 more errors --', '4:d']
    """
    if len(found) <= count:
        return [show(each) for each in found]
    head = count // 2
    first, last = found[:head], found[len(found) - (count - head) :]
    return [*map(show, first), f"-- {len(found) - count} more {what} --", *map(show, last)]


def fit(lines: list[str], room: int) -> str:
    r"""Join as many lines as fit in `room` characters; if not all fit, the last line counts the others.

    >>> fit(["one", "two", "three"], 100), fit(["one", "two", "x" * 90], 32)
    ('one\ntwo\nthree', 'one\ntwo\n(1 line more)')
    """
    used = -1
    total = sum(map(len, lines)) + len(lines) - 1
    if total <= room:
        return "\n".join(lines)
    room -= 24
    for kept, line in enumerate(lines):
        used += len(line) + 1
        if used > room:
            left = len(lines) - kept
            return "\n".join([*lines[:kept], f"({left} line{'s' if left > 1 else ''} more)"])
    return "\n".join(lines)
