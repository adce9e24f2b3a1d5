"""Colours, for people at a terminal who did not say NO_COLOR. What is painted was escaped before, so the
only control sequences that a terminal is sent are those made here."""

from __future__ import annotations

from typing import Final

STYLES: Final = {
    "match": "1;31",
    "number": "32",
    "mark": "36",
    "heading": "1",
    "good": "32",
    "busy": "33",
    "bad": "31",
    "faint": "2",
}
"""What a thing is -> the parameters of SGR, the escape sequence for colours."""

STATES: Final = {
    "open": "busy",
    "ready": "busy",
    "running": "good",
    "waiting": "busy",
    "failed": "bad",
    "broken": "bad",
    "cancelled": "faint",
    "exited": "faint",
}
"""States of processes and contents that are seen among others -> their style."""


def paint(text: str, style: str) -> str:
    """`text` between the sequences that begin and end a style.

    >>> paint("error", "match")
    '\\x1b[1;31merror\\x1b[m'
    """
    return f"\x1b[{STYLES[style]}m{text}\x1b[m" if text else ""


def paint_state(text: str) -> str:
    """A cell that begins with a state, painted as that state is; any other as it was."""
    style = STATES.get(text.split(maxsplit=1)[0]) if text.strip() else None
    return paint(text, style) if style else text
