r"""Find matching lines with RE2, whose time is linear in the text for every pattern.

Patterns apply to single lines, but scanning a text line by line in Python is thirty times slower than
scanning it in blocks. So blocks are scanned whole wherever that gives the same result:

    (?m)(?:PATTERN)                          finds the next matching line; `^` and `$` match at line ends
    (?m)(?:PATTERN).*$\C                     consumes the line's LF too: each match is a matching line
    ...(?:^.*(?:PATTERN).*$\C)*              and the matching lines that follow it: for dense matches
    (?m)(?:PATTERN).*(?:PATTERN).*$\C        consumes a line that may have several matches, which are counted

RE2's `never_nl` excludes LF from everything the pattern could match, so a match stays within its line; only
`\C`, any single byte, can match the LF. A pattern that can distinguish a line from a block (`\A`, `\z`,
`(?-m)`), or that cannot be enclosed in a group (`\Q`), is applied line by line.

RE2 works on the bytes of UTF-8, so `\B` also matches between the bytes of one character. A match that begins
there is empty: no pattern can match the remaining bytes of a character. So for a pattern with `\B`, the line
is found by `(?:PATTERN).*$`, which must match the remaining bytes, and then the match by the pattern alone.

`\d`, `\w`, `\s` and `\b` are ASCII-only; `\pN`, `\pL` and `ignore_case` support Unicode. `\C` is always one
byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, NamedTuple

import re2

from fdstore.errors import InvalidArgument, quoted
from fdstore.text.paging import encode

MAX_PATTERN_CHARS = 1000

MAX_MEMORY = 4 << 20
"""Memory limit in bytes of one compiled form. A pattern that needs more is refused; an automaton that reaches
the limit while it runs is rebuilt."""

MAX_COUNTED = 50_000
"""The most calls of RE2 by which the matches of one search are counted, a tenth of a second or two."""

FEW = 300
"""Of fewer matching lines in a block each is searched for more matches; else the block, which is faster."""

DENSE = 0.5
"""The share of matching lines above which searching for runs of them is faster."""

Data = bytes | bytearray

_NEEDS_BARE_LINES = re.compile(r"\\[AzCQ]|\(\?[a-zA-Z]*-")
_QUOTES = re.compile(r"\\Q(?:.*?\\E|.*)|\\.", re.DOTALL)
_LITERAL = re.compile(r"[\w \-,;:=/<>\"'!@#%&~`]+")
_REASON_CHARS = 200

_LACKS = {
    r"\(\?<?[=!]": "; RE2 has no look-around, so search for the whole line, or for each part of it",
    r"\\[1-9]|\(\?P=": "; RE2 has no back-references, so search for each case",
    r"[*+?}]\+|\(\?>": "; RE2 never backtracks, so a possessive or atomic form is written as the plain one",
}
"""What people know from other engines -> what to do without it."""


class LineMatch(NamedTuple):
    """A matching line: the offsets of its first byte, its LF, and the start and end of the first match."""

    line_start: int
    line_end: int
    start: int
    end: int


class HitCount:
    """Counts the matches in matching lines, of which a line may have several. An empty match counts only
    where its line has no other.

    hits      the matches so far
    is_exact  whether these are all; else there are at least as many
    """

    def __init__(self) -> None:
        self.hits = 0
        self.is_exact = True
        self._left = MAX_COUNTED

    def add_line(self, matches: Iterable[Any], known: int = 0) -> None:
        """Add the matches of a line, besides some that are `known`; at least one."""
        found = known
        if self._left:
            spans = [match.span() for match in islice(matches, self._left - known)]
            found += sum(start < end for start, end in spans)
            self._left -= known + len(spans)
        if not self._left:
            self.is_exact = False
        self.hits += max(found, 1)


class Pattern:
    """A compiled pattern. Raises `InvalidArgument` with RE2's reason for an invalid one.

    >>> Pattern(r"b+$").next(b"ab b\\nbbc\\nabb\\n", 5, 13)
    LineMatch(line_start=9, line_end=12, start=10, end=12)
    """

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        self._bare = _compiled(check_pattern(pattern), ignore_case)
        self._bare_to_end: Any = None
        self._first: Any = None
        self._first_to_end: Any = None
        self._each: Any = None
        self._runs: Any = None
        self._several: Any = None
        self._literal: re.Pattern[bytes] | None = None
        self._literal_bytes = b""
        self._dense = False
        splits_chars = r"\B" in pattern and r"\C" not in pattern
        if _NEEDS_BARE_LINES.search(pattern):
            if splits_chars:
                self._bare_to_end = _compiled(rf"(?:{_unquoted(pattern)}).*\z", ignore_case)
            return
        if splits_chars:
            self._first_to_end = _compiled(rf"(?m)(?:{pattern}).*$", ignore_case)
        rest = r".*$\C"
        each = rf"(?m)(?:{pattern}){rest}"
        try:
            self._first = _compiled(rf"(?m)(?:{pattern})", ignore_case)
            self._each = self._runs = _compiled(each, ignore_case)
            self._runs = _compiled(rf"{each}(?:^.*(?:{pattern}){rest})*", ignore_case)
            self._several = _compiled(rf"(?m)(?:{pattern}).*(?:{pattern}){rest}", ignore_case)
        except InvalidArgument:
            # the pattern alone fits the memory limit, but a longer form does not: use those that fit
            pass
        if not ignore_case and _LITERAL.fullmatch(pattern):
            # for a literal, the standard library does not backtrack and is even faster
            self._literal = re.compile(b"(" + encode(re.escape(pattern)) + rb")[^\n]*\n")
            self._literal_bytes = encode(pattern)

    def next(self, data: Data, start: int, end: int) -> LineMatch | None:
        """Return the first matching line of `data[start:end]`, which must be whole lines with their LFs."""
        if self._literal is not None:
            literal = self._literal.search(data, start, end)
            if literal is None:
                return None
            first = literal.start()
            line_start = max(data.rfind(b"\n", start, first) + 1, start)
            return LineMatch(line_start, literal.end() - 1, first, literal.end(1))
        if self._first is None:
            return self._next_bare(data, start, end)
        match = _search(self._first, self._first_to_end, data, start, end - 1)
        if match is None:
            return None
        first, last = match.span()
        line_start = max(data.rfind(b"\n", start, first) + 1, start)
        return LineMatch(line_start, data.find(b"\n", first), first, last)

    def _next_bare(self, data: Data, start: int, end: int) -> LineMatch | None:
        view = memoryview(data)
        while start < end:
            line_end = data.find(b"\n", start)
            match = _search(self._bare, self._bare_to_end, view[start:line_end], 0, line_end - start)
            if match is not None:
                first, last = match.span()
                return LineMatch(start, line_end, start + first, start + last)
            start = line_end + 1
        return None

    def count(self, data: Data, start: int, end: int, hits: HitCount | None = None) -> tuple[int, int]:
        """Return the number of lines in `data[start:end]`, which must be whole lines, and of matching ones,
        whose matches are added to `hits`."""
        lines = data.count(b"\n", start, end)
        if self._literal is not None:
            literals = self._literal.finditer(data, start, end)
            few = [match.span() for match in islice(literals, FEW)]
            found = len(few) + sum(1 for _ in literals)
            if hits is not None:
                spans = few if found < FEW else [(few[0][0], end)]
                hits.hits += sum(data.count(self._literal_bytes, *span) for span in spans)
            return lines, found
        if self._each is None or (hits is not None and self._several is None):
            return lines, self._count_singly(data, start, end, hits)
        matches = (self._runs if self._dense else self._each).finditer(data, start, end)
        few = [match.span() for match in islice(matches, FEW)]
        if self._dense:
            found = sum(data.count(b"\n", *span) for span in few)
            found += sum(data.count(b"\n", *match.span()) for match in matches)
        else:
            found = len(few) + sum(1 for _ in matches)
        if hits is not None:
            hits.hits += found
            for span in few if len(few) < FEW else [(few[0][0], end)]:
                self._add_several(data, *span, hits)
        # the next block is probably like this one
        self._dense = found > DENSE * lines
        return lines, found

    def _add_several(self, data: Data, start: int, end: int, hits: HitCount) -> None:
        """Add the matches of lines that have several but for one of each, from the first match at `start`
        on."""
        for match in self._several.finditer(data, start, end) if hits.is_exact else ():
            first, last = match.span()
            line_start = data.rfind(b"\n", 0, first) + 1
            hits.hits -= 1
            self.count_hits(data, LineMatch(line_start, last - 1, first, first), hits)
            if not hits.is_exact:
                break

    def count_hits(self, data: Data, line: LineMatch, hits: HitCount) -> None:
        """Add the matches of a matching line to `hits`."""
        if self._literal is not None:
            hits.hits += data.count(self._literal_bytes, line.start, line.line_end)
            return
        view = memoryview(data)[line.line_start : line.line_end]
        hits.add_line(self._bare.finditer(view, line.end - line.line_start), known=line.start < line.end)

    def spans(self, line: bytes) -> list[tuple[int, int]]:
        """Return the offsets of all non-empty matches in a line without LF.

        >>> Pattern("b+").spans(b"abba b")
        [(1, 3), (5, 6)]
        """
        found = (match.span() for match in self._bare.finditer(line))
        return [(start, end) for start, end in found if start < end]

    def _count_singly(self, data: Data, start: int, end: int, hits: HitCount | None) -> int:
        found = 0
        while start < end and (line := self.next(data, start, end)):
            found += 1
            if hits is not None:
                self.count_hits(data, line, hits)
            start = line.line_end + 1
        return found


def check_pattern(pattern: object) -> str:
    """Return a pattern of valid size. Raises `InvalidArgument`."""
    if not isinstance(pattern, str):
        raise InvalidArgument("pattern", f"a text is needed, not {quoted(pattern)}")
    if not 1 <= len(pattern) <= MAX_PATTERN_CHARS:
        raise InvalidArgument(
            "pattern", f"it has {len(pattern)} characters; 1-{MAX_PATTERN_CHARS} are allowed"
        )
    if "\n" in pattern:
        raise InvalidArgument("pattern", "it holds a line break, and no line does; search for one line")
    encode(pattern)
    return pattern


def _search(compiled: Any, to_end: Any, data: Data | memoryview, start: int, end: int) -> Any:
    """Return the first match; with `to_end`, the first that begins where a match of `to_end` does."""
    if to_end is not None:
        match = to_end.search(data, start, end)
        if match is None:
            return None
        start = match.start()
    return compiled.search(data, start, end)


def _unquoted(pattern: str) -> str:
    """Return the pattern with its last `\\Q` closed, so that more can follow it."""
    last = [found[0] for found in _QUOTES.finditer(pattern)][-1:]
    return rf"{pattern}\E" if last and last[0].startswith(r"\Q") and not last[0].endswith(r"\E") else pattern


def groups_in(pattern: str, *, ignore_case: bool = False) -> Callable[[str], list[str | None]]:
    r"""Return the function that says what the groups of the pattern match first in a line; None for a group
    that matches nothing there. Raises `InvalidArgument`.

    >>> groups_in(r"(\w+)=(\d+)?")("size=12"), groups_in("x")("x")
    (['size', '12'], [])
    """
    compiled = _compiled(check_pattern(pattern), ignore_case, capture=True)

    def groups(line: str) -> list[str | None]:
        match = compiled.search(line)
        return [] if match is None else list(match.groups())

    return groups


def compile_line_pattern(pattern: str, *, ignore_case: bool) -> Any:
    """Return a pattern of fdstore's own, of any length, compiled to search blocks of lines. Raises
    `InvalidArgument` if it is too large."""
    return _compiled(pattern, ignore_case)


def _compiled(pattern: str, ignore_case: bool, *, capture: bool = False) -> Any:
    options = re2.Options()
    options.never_nl = True
    options.never_capture = not capture  # groups cost a second, slower pass over each match
    options.case_sensitive = not ignore_case
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    # re2.compile keeps the last 128 patterns, with all their memory, for the life of the process
    uncached = re2.Filter()
    try:
        uncached.Add(pattern, options)
    except re2.error:
        # Filter gives no reason; re2.compile does, and does not cache failures
        try:
            return re2.compile(pattern, options)
        except re2.error as error:
            lacks = next((text for form, text in _LACKS.items() if re.search(form, pattern)), "")
            raise InvalidArgument(
                "pattern", f"it is not an RE2 expression: {_reason(error)}{lacks}"
            ) from error
    return uncached.re(0)


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else b""
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    return quoted(text, _REASON_CHARS)[1:-1]
