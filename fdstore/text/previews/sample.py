"""The source of a preview: a text, or the beginning and the end of one.

    |<---------- head ---------->|..........|<---------- tail ---------->|
    1: first    n:               |          |               m:      last |

A text in memory is looked at whole up to `WHOLE_BYTES`; of a longer one, and of a text in the store, the two
ends are. What is counted is counted in all of that, by what takes few steps for each line; of which kind a
text is, and how it begins and ends, the `first` and `last` lines say. Only whole lines are used as lines; the
number of each is known, because the head begins with line 1 and the tail ends with the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from fdstore.model.records import Record
from fdstore.text.layout import show_controls
from fdstore.text.paging import count_lines
from fdstore.text.previews.line_search import LineSpan, MatchingLines, compile_words, find_lines

T = TypeVar("T")

WHOLE_BYTES = 3_000_000
"""A text in memory that is not longer than this (UTF-8) is looked at whole; searching it takes some
milliseconds."""

END_BYTES = 500_000
"""The bytes at either end of a longer one that are looked at."""

MAX_CHAR_BYTES = 4

SHORT_CHARS = 60_000
"""The lines of a text that is not longer are looked at one by one, if they are not too many."""

HEAD_CHARS = 24_000
"""The characters at the beginning of a longer one that are looked at by lines."""

TAIL_CHARS = 12_000
"""The same at its end."""

MAX_LINES = 600
"""The most lines of either end that are looked at one by one."""

LINE_CHARS = 160
"""The characters of a line that are shown."""

JUDGED_LINES, JUDGED_CHARS = 60, 400
"""The lines at the beginning, and the characters of a line, that decide of which kind a text is."""

SHOWN_TAIL_CHARS = 300
"""The characters of the end that are shown after a description, where they may say how it ended."""

_OF_DOCUMENTS = ("```", ".TH ", ".SH ", ".Dd ")
"""How a line begins that only Markdown or the source of a manual page has."""

_ERROR_WORDS = compile_words(
    rb"(?i:error|fail|fatal|critical|panic|exception|not ok|traceback)|(?m:^)E   "  # the last is pytest's
)


@dataclass(frozen=True)
class Sample:
    """The beginning and the end of a text of `chars` characters and `total_lines` lines.

    head       the beginning; all of the text if `whole`
    tail       the end, "" if `whole`; its first line counts as cut; it may overlap the head
    first      the first whole lines, without LF
    last       the last ones that are not in `first`; the number of the first of them is `last_number`
    """

    head: str
    tail: str
    chars: int
    total_lines: int
    first: list[str]
    last: list[str]
    whole: bool

    @property
    def last_number(self) -> int:
        return self.total_lines - len(self.last) + 1

    @property
    def all_lines(self) -> bool:
        """Return whether `first` and `last` are all lines of the text."""
        return len(self.first) + len(self.last) == self.total_lines

    @cached_property
    def is_document(self) -> bool:
        """Return whether the text may quote others: Markdown with fences, or the source of a manual page."""
        return any(line.startswith(_OF_DOCUMENTS) for line in self.first)

    @property
    def script_of(self) -> str:
        """Return the first line of a script, which names its interpreter; "" if the text is none."""
        return self.first[0][:JUDGED_CHARS] if self.first and self.first[0].startswith("#!") else ""

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

    @cached_property
    def head_lines(self) -> list[str]:
        """All whole lines of the beginning."""
        lines = self.head.split("\n")
        if not self.whole or not lines[-1]:
            lines.pop()
        return lines

    def range_of_spans(self) -> str:
        """Return all whole lines that are there for display."""
        return MatchingLines([], [(each.first, each.last) for each in self.spans]).range_in(self.total_lines)

    def range_of_first(self, count: int) -> str:
        """Return the first `count` lines for display."""
        return "all" if count == self.total_lines else f"lines 1-{count}"

    @cached_property
    def head_bytes(self) -> bytes:
        """The beginning in UTF-8."""
        return self.head.encode("utf-8", "surrogatepass")

    @property
    def all_bytes(self) -> bytes:
        """All that is there, in UTF-8, with a line end between the beginning and the end."""
        tail = self.tail.encode("utf-8", "surrogatepass")
        return self.head_bytes + b"\n" + tail if tail else self.head_bytes

    @cached_property
    def spans(self) -> list[LineSpan]:
        """All whole lines that are there."""
        head = self.head_bytes
        if self.whole:
            return [LineSpan(1, self.total_lines, head)]
        head = head[: head.rfind(b"\n") + 1]
        head_lines = head.count(b"\n")
        tail = self.tail.partition("\n")[2]
        first_of_tail = self.total_lines - count_lines(tail) + 1
        tail_bytes = tail.encode("utf-8", "surrogatepass")
        if first_of_tail <= head_lines:
            tail_bytes = tail_bytes.split(b"\n", head_lines + 1 - first_of_tail)[-1]
            first_of_tail = head_lines + 1
        return [LineSpan(1, head_lines, head), LineSpan(first_of_tail, self.total_lines, tail_bytes)]

    @cached_property
    def error_lines(self) -> MatchingLines:
        """The lines that contain a word as errors do, and which lines were searched."""
        return find_lines(self.spans, _ERROR_WORDS)


def sample_text(text: str, lines: int | None = None) -> Sample:
    """Return the sample of a text that is in memory, and has this many lines (default: count them)."""
    if lines is None:
        lines = count_lines(text)
    if len(text) <= WHOLE_BYTES and (text.isascii() or size_in_utf8(text) <= WHOLE_BYTES):
        return sample_ends(text, "", len(text), lines)
    end_chars = END_BYTES // (1 if text.isascii() else MAX_CHAR_BYTES)
    # one character more, to see whether it begins a line
    return sample_ends(text[:end_chars], text[-end_chars - 1 :], len(text), lines)


def size_in_utf8(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def sample_ends(head: str, tail: str, chars: int, lines: int) -> Sample:
    """Return the sample of a text by its beginning and its end, which may overlap. The first line of `tail`
    counts as cut; it is no line of the sample."""
    whole = len(head) >= chars
    if whole and chars <= SHORT_CHARS and head.count("\n", 0, -1) < 2 * MAX_LINES:
        first = head.split("\n")
        if not first[-1]:
            first.pop()
        return Sample(head, "", chars, lines, first, [], whole)
    start, end = head[:HEAD_CHARS], (head if whole else tail)[-TAIL_CHARS - 1 :]
    first = start.split("\n", MAX_LINES)[:-1]
    last = end.removesuffix("\n").rsplit("\n", MAX_LINES)[1:]
    last = last[max(0, len(first) + len(last) - lines) :]
    return Sample(head, "" if whole else tail, chars, lines, first, last, whole)


class Outline(Record, frozen=True, kw_only=True):
    """A preview: its `kind`, what part of the text was looked at (`of`), its lines, how many characters of
    the end are to be shown with it, and the last line of the text that they show already: the end begins
    behind that."""

    kind: str
    of: str
    lines: list[str]
    tail_chars: int = 0
    tail_after: int = 0


def excerpt(line: str, limit: int = LINE_CHARS) -> str:
    r"""Return a line for display: of a long one the beginning, control characters visible.

    >>> excerpt("\x1b[31mred\r"), excerpt("a" * 9, 4)
    ('\\u{1b}[31mred\\u{d}', 'aaaa... (5 characters more)')
    """
    if len(line) <= limit:
        return show_controls(line, keep="\t")
    return f"{show_controls(line[:limit], keep=chr(9))}... ({len(line) - limit} characters more)"


def part_of(of: str) -> str:
    """Return what follows a count of a part of a text, to say of which.

    >>> part_of("all"), part_of("lines 1-600")
    ('', ' in lines 1-600')
    """
    return "" if of == "all" else f" in {of}"


def numbered_excerpt(number: int, line: str) -> str:
    """Return a line with its number, as grep prints it.

    >>> numbered_excerpt(7, "made")
    '7:made'
    """
    return f"{number}:{excerpt(line)}"


def first_lines(sample: Sample, count: int = 3) -> list[str]:
    """Return the first lines with their numbers, for a kind that says what is inside a text."""
    return [numbered_excerpt(number, line) for number, line in enumerate(sample.first[:count], 1)]


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
