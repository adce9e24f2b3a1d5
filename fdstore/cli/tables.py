"""Format tables as text: pure functions. Numbers and times are formatted by `fdstore.text.quantities`.

Widths are columns of a terminal: East Asian characters take two, combining ones none. Cells may contain
untrusted text, so their control characters are escaped.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from fdstore.cli.colours import paint, paint_state
from fdstore.text.layout import show_controls

GAP = "  "
MIN_CUT = 8
"""The minimum width of a shortened column."""


def width(text: str) -> int:
    """Return the number of terminal columns of `text`.

    >>> width("abc"), width("日本"), width("e\\u0301")
    (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def shorten(text: str, columns: int) -> str:
    """Shorten `text` to `columns`, with "..." at its end.

    >>> shorten("abcdefgh", 6), shorten("abc", 6)
    ('abc...', 'abc')
    """
    if width(text) <= columns:
        return text
    kept, room = "", columns - 3
    for char in text:
        room -= _char_width(char)
        if room < 0:
            break
        kept += char
    return f"{kept}..."


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    cut: str = "",
    drop: Sequence[str] = (),
    overflow: Sequence[str] = (),
    columns: int | None = None,
    coloured: bool = False,
) -> str:
    """Format rows and their header in aligned columns.

    Columns in `right` are right-aligned. While a line would exceed `columns`, the columns in `drop` are left
    out, in their order; then the column `cut` is shortened. In the columns in `overflow`, a cell wider than
    a third of `columns` keeps its text and moves the rest of its own line.

    >>> print(table(["FD", "CHARS"], [["fd:1", "7"], ["fd:12", "120"]], right=["CHARS"]))
    FD     CHARS
    fd:1       7
    fd:12    120
    """
    cells = [list(header), *([show_controls(cell, keep="") for cell in row] for row in rows)]
    widths = [max(width(row[i]) for row in cells) for i in range(len(header))]
    if columns is not None:
        for name in overflow:
            i = cells[0].index(name)
            widths[i] = min(widths[i], max(MIN_CUT, columns // 3))
        for name in drop:
            if _excess(widths, columns) > 0:
                _drop_column(cells, widths, name)
        over = _excess(widths, columns)
        if cut in cells[0] and over > 0:
            i = cells[0].index(cut)
            widths[i] = max(MIN_CUT, width(cut), widths[i] - over)
            for row in cells:
                row[i] = shorten(row[i], widths[i])
    lines = []
    for number, row in enumerate(cells):
        aligned = []
        for name, cell, cell_width in zip(cells[0], row, widths, strict=True):
            fill = " " * (cell_width - width(cell))
            shown = cell
            if coloured and number == 0:
                shown = paint(cell, "heading")
            elif coloured and name == "STATE":
                shown = paint_state(cell)
            aligned.append(fill + shown if name in right else shown + fill)
        lines.append(GAP.join(aligned).rstrip())
    return "\n".join(lines)


def _excess(widths: Sequence[int], columns: int) -> int:
    """Return by how many columns a line is too long."""
    return sum(widths) + len(GAP) * (len(widths) - 1) - columns


def _drop_column(cells: list[list[str]], widths: list[int], name: str) -> None:
    i = cells[0].index(name)
    del widths[i]
    for row in cells:
        del row[i]


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Format pairs of a name and a value, one per line.

    >>> print(facts([("fd", "fd:1"), ("source", "text")]))
    fd      fd:1
    source  text
    """
    longest = max((width(name) for name, _ in pairs), default=0)
    return "\n".join(f"{name:<{longest}}{GAP}{show_controls(value, keep='')}" for name, value in pairs)
