"""Hits as `grep -n` prints them, whole, while a search goes on:

    120:a line that matches
    121-a line of context
    --
    300:another group

Nothing is cut here: a content made of hits holds exactly the lines that match.
"""

from __future__ import annotations

from collections import deque

from fdstore.text.pattern import Data, Found
from fdstore.text.search import near


class GrepPrinter:
    """Prints every matching line and `context` lines around it. The `context` lines before a hit are
    held, whole, until it is known whether there is one; what is printed, until it is taken."""

    full = False

    def __init__(self, context: int) -> None:
        self._context = context
        self._before: deque[tuple[int, bytes]] = deque(maxlen=context)
        self._owed = 0
        self._last = 0
        self._printed: list[bytes] = []

    def take(self) -> bytes:
        """What was printed since the last call."""
        printed, self._printed = b"".join(self._printed), []
        return printed

    def passed(self, data: Data, start: int, end: int, line: int) -> None:
        if not self._context:
            return
        for a, b, number in near(data, start, end, line, lambda: self._owed > 0, self._context):
            if self._owed:
                self._owed -= 1
                self._print(number, b"-", data[a:b])
            else:
                self._before.append((number, bytes(data[a:b])))

    def hit(self, data: Data, found: Found, line: int) -> None:
        first = self._before[0][0] if self._before else line
        if self._context and self._last and first > self._last + 1:
            self._printed.append(b"--\n")
        while self._before:
            number, text = self._before.popleft()
            self._print(number, b"-", text)
        self._print(line, b":", data[found.line_start : found.line_end])
        self._owed = self._context

    def _print(self, number: int, mark: bytes, text: Data) -> None:
        self._printed.append(b"%d%b%b\n" % (number, mark, bytes(text)))
        self._last = number
