"""Print hits as `grep -n` does, during a search:

    120:a line that matches
    121-a line of context
    --
    300:another group

Lines are never shortened: a content created from hits holds exactly the matching lines. A `Layout` formats
each line, so that output can have colours, or the matches alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from fdstore.text.pattern import Data, LineMatch
from fdstore.text.search import near

Layout: TypeAlias = Callable[[int, bytes, tuple[int, int] | None], bytes]
"""Formats a line, with its LF, from its number, its bytes without LF, and the offsets of the first match in
them (None for a line of context)."""

SEPARATOR = b"--\n"


def number_lines(number: int, line: bytes, match: tuple[int, int] | None) -> bytes:
    """Format a line as `grep -n` does.

    >>> number_lines(7, b"an error", (3, 8)), number_lines(8, b"later", None)
    (b'7:an error\\n', b'8-later\\n')
    """
    return b"%d%b%b\n" % (number, b"-" if match is None else b":", line)


class GrepPrinter:
    """Prints every matching line, or the first `max_matches`, with `before` lines before and `after` lines
    after it. Buffers the last `before` lines, and the output until `take` is called."""

    def __init__(
        self,
        before: int,
        after: int,
        *,
        max_matches: int | None = None,
        layout: Layout = number_lines,
        separator: bytes = SEPARATOR,
    ) -> None:
        self._after = after
        self._left = max_matches
        self._layout = layout
        self._separator = separator if before or after else b""
        self._before: deque[tuple[int, bytes]] = deque(maxlen=before)
        self._owed = 0
        self._last = 0
        self._printed: list[bytes] = []

    @property
    def full(self) -> bool:
        return self._left == 0 and not self._owed

    def take(self) -> bytes:
        """Return the output since the last call."""
        printed, self._printed = b"".join(self._printed), []
        return printed

    def passed(self, data: Data, start: int, end: int, line: int) -> None:
        held = self._before.maxlen or 0
        if not (held or self._owed):
            return
        for a, b, number in near(data, start, end, line, lambda: self._owed > 0, held):
            self._take_context(number, bytes(data[a:b]))

    def hit(self, data: Data, found: LineMatch, line: int) -> None:
        text = bytes(data[found.line_start : found.line_end])
        if self._left == 0:
            self._take_context(line, text)
            return
        if self._left is not None:
            self._left -= 1
        first = self._before[0][0] if self._before else line
        if self._last and first > self._last + 1:
            self._printed.append(self._separator)
        while self._before:
            self._print(*self._before.popleft(), None)
        self._print(line, text, (found.start - found.line_start, found.end - found.line_start))
        self._owed = self._after

    def _take_context(self, number: int, text: bytes) -> None:
        if self._owed:
            self._owed -= 1
            self._print(number, text, None)
        elif self._left != 0:
            self._before.append((number, text))

    def _print(self, number: int, text: bytes, match: tuple[int, int] | None) -> None:
        self._printed.append(self._layout(number, text, match))
        self._last = number
