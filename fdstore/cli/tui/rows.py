"""The table of all screens, and its cells."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from fdstore.text.layout import show_controls

REFRESH_S = 1.0
"""The time between two looks of a screen at what it shows."""


class Rows(DataTable[Text]):
    """A table whose rows can be looked into."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select_cursor", "Look into")]


def cell(text: str, *, right: bool = False, style: str = "") -> Text:
    """Return a cell: a `Text`, since a table reads markup in a str."""
    return Text(show_controls(text, keep=""), style=style, justify="right" if right else "left")
