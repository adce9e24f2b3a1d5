"""Colours for terminals, unless NO_COLOR is set. Callers escape text before they paint it, so a terminal gets
no control sequences but those of this module."""

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
"""Style -> the parameters of SGR, the escape sequence for colours."""

STATE_STYLES: Final = {
    "open": "busy",
    "ready": "busy",
    "running": "good",
    "waiting": "busy",
    "failed": "bad",
    "broken": "bad",
    "cancelled": "faint",
    "exited": "faint",
}
"""State of a process or content in a table -> its style."""


def paint(text: str, style: str) -> str:
    """Return `text` between the sequences that begin and end a style.

    >>> paint("error", "match")
    '\\x1b[1;31merror\\x1b[m'
    """
    return f"\x1b[{STYLES[style]}m{text}\x1b[m" if text else ""


def paint_state(text: str) -> str:
    """Paint a table cell that begins with a state; return any other unchanged."""
    style = STATE_STYLES.get(text.split(maxsplit=1)[0]) if text.strip() else None
    return paint(text, style) if style else text
