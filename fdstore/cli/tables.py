"""Format numbers, times and tables as text: pure functions.

Widths are columns of a terminal: East Asian characters take two, combining ones none. Cells may contain
untrusted text, so their control characters are escaped.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime

from fdstore.cli.colours import paint, paint_state
from fdstore.text.layout import show_controls

GAP = "  "
MIN_CUT = 8
"""The minimum width of a shortened column."""

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
RELATIVE_FOR_S = 60 * DAY_S
"""Older times are shown as dates."""


def format_size(count: int) -> str:
    """Format a number of bytes.

    >>> format_size(999), format_size(12_345_678), format_size(999_999)
    ('999 B', '12.3 MB', '1.0 MB')
    """
    if count < 1000:
        return f"{count} B"
    value, units = count / 1000, ["kB", "MB", "GB", "TB"]
    while value >= 999.95 and len(units) > 1:
        value /= 1000
        del units[0]
    return f"{value:.1f} {units[0]}"


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Format a number with its noun.

    >>> format_count(1, "line"), format_count(2, "process", "processes")
    ('1 line', '2 processes')
    """
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """Format a duration in its largest unit.

    >>> duration(0.4), duration(90), duration(200_000)
    ('0 s', '1 min', '2 d')
    """
    if seconds < MINUTE_S:
        return f"{max(0, int(seconds))} s"
    for unit_s, name, limit_s in ((MINUTE_S, "min", HOUR_S), (HOUR_S, "h", DAY_S)):
        if seconds < limit_s:
            return f"{int(seconds / unit_s)} {name}"
    return f"{int(seconds / DAY_S)} d"


def moment(at_s: float) -> str:
    """Format a time as ISO 8601, in UTC.

    >>> moment(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ago(at_s: float, now_s: float) -> str:
    """Format the time since `at_s`, or the date if that is long ago.

    >>> ago(100, 280), ago(100, 100)
    ('3 min ago', 'now')
    """
    passed = now_s - at_s
    if passed >= RELATIVE_FOR_S:
        return moment(at_s)
    return f"{duration(passed)} ago" if passed >= 1 else "now"


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
