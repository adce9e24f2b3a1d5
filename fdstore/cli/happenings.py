"""What happened in a tree, a line each: on the screens of `run`, `attach` and `demo`.

      0.22s  triage             calls search_fd(fd='fd:1', pattern='error')
      0.22s  triage               gets a result of 135 B from search_fd: fd:1, 1 match
    1:02:07  triage.1           failed with code 1: poison: too many workers died while they ran it

The time is that of the event since the tree began, by the clock of Redis: who attaches later sees the same.
On a terminal a long line goes on below its text.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fdstore.cli.colours import paint
from fdstore.cli.tables import GAP, width, wrap
from fdstore.inspector.reading.narrate import Tone
from fdstore.text.layout import show_controls
from fdstore.text.quantities import HOUR_S, MINUTE_S

PRECISE_S = 1000
NARROW_INDENT = 12
PAINTED: tuple[Tone, ...] = ("bad", "busy", "good")
"""The tones in which the text of a line is painted; others are too many to tell something."""


class Happening(msgspec.Struct, frozen=True):
    """An event of a process: `passed_s` after its tree began."""

    passed_s: float
    process: str
    what: str
    tone: Tone = "mark"

    def __str__(self) -> str:
        return next(self.lines())

    def lines(self, *, columns: int | None = None, coloured: bool = False) -> Iterator[str]:
        """Yield its lines: one, or as many as it needs in `columns`."""
        time, process = format_passed(self.passed_s), f"{show_controls(self.process, keep=''):<18} "
        margin = f"{time}{GAP}{process}"
        shown = show_controls(self.what, keep="")
        text = shown.lstrip(" ")
        indent = " " * (width(margin) + len(shown) - len(text))
        rest = [text]
        painted = f"{paint(time, 'faint')}{GAP}{paint(process, 'number')}" if coloured else margin
        head = painted + indent[width(margin) :]
        if columns is not None and width(margin) > columns // 2 and width(margin + shown) > columns:
            indent = " " * NARROW_INDENT
            first, *more = wrap(margin, columns, indent=" " * NARROW_INDENT)
            yield first if more else painted.rstrip()
            yield from more
            head = indent
        if columns is not None:
            rest = wrap(text, columns - len(indent), indent=GAP)
        for number, part in enumerate(rest):
            piece = paint(part, self.tone) if coloured and self.tone in PAINTED else part
            yield (head if number == 0 else indent) + piece


def format_passed(seconds: float) -> str:
    """Format the time since a tree began, in seven columns.

    >>> format_passed(0.224), format_passed(3727)
    ('  0.22s', '1:02:07')
    """
    if seconds < PRECISE_S:
        return f"{max(0.0, seconds):6.2f}s"
    hours, rest = divmod(int(seconds), HOUR_S)
    return f"{hours}:{rest // MINUTE_S:02}:{rest % MINUTE_S:02}"
