"""Lay out tables, and texts in lines, for a terminal: pure functions.

A table is declared once, as its columns, and each says what becomes of it where a line would be too long:

    fit       each column has the width of its widest cell
    shrink    those with `least` become narrower; cells are cut, with "..." at their end
    spill     a cell that is too wide for its column stands whole on lines of its own, before or after its row
    drop      columns are left out, in the order of `drop`

So a line is never wider than the terminal. Where there is none, tables are whole.

Widths are columns of a terminal: East Asian characters take two, combining ones none. Cells may contain
untrusted text, so their control characters are escaped. Numbers and times are formatted by
`fdstore.text.quantities`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Literal, NamedTuple

from fdstore.cli.colours import paint, paint_state
from fdstore.text.layout import show_controls

GAP = "  "
ELLIPSIS = "..."
SPILL_INDENT = 4
SPILL_LINES = 8
"""The most lines after a row that a cell of it continues on."""

MIN_VALUE = 20
"""The width of a value, however long the names of values are."""


class Column(NamedTuple):
    """A column of a table: its head, and what becomes of it on a narrow terminal.

    right  its cells are aligned at the right
    least  it may become as narrow as this (0: never)
    spill  its cells that are too wide stand whole on lines of their own, before or after the rest of the row
    drop   it may be left out, the lowest number first (0: never)
    """

    name: str
    right: bool = False
    least: int = 0
    spill: Literal["", "before", "after"] = ""
    drop: int = 0


def number(name: str, drop: int = 0) -> Column:
    """Return a column of numbers."""
    return Column(name, right=True, drop=drop)


def key(name: str, least: int = 12) -> Column:
    """Return a column of ids or names, which people copy: they are never cut."""
    return Column(name, least=least, spill="before")


def reason(name: str, least: int = 16) -> Column:
    """Return a column, the last one, of texts that people read to their end."""
    return Column(name, least=least, spill="after")


class Table(NamedTuple):
    """The columns of a table. `whole` is the command that shows what is cut of a cell."""

    columns: tuple[Column, ...]
    whole: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The heads of the columns."""
        return tuple(column.name for column in self.columns)

    def without(self, *names: str) -> Table:
        """Return the table without some columns."""
        return Table(tuple(each for each in self.columns if each.name not in names), self.whole)

    def in_one_line(self) -> Table:
        """Return the table for a screen whose rows have one line each: all but names are cut at their end."""
        return Table(tuple(each._replace(spill="") for each in self.columns), self.whole)

    def keeping(self, name: str) -> Table:
        """Return the table with a column, if it has that, which is not left out."""
        kept = (each._replace(drop=0) if each.name == name else each for each in self.columns)
        return Table(tuple(kept), self.whole)


def width(text: str) -> int:
    """Return the number of terminal columns of `text`.

    >>> width("abc"), width("日本"), width("e\\u0301")
    (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if char == "\ufe0f":  # shows the character before it as a picture, which is wider
        return 1
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
    return _head(text, columns - len(ELLIPSIS)) + ELLIPSIS[: max(0, columns)]


def shorten_inside(text: str, columns: int) -> str:
    """Shorten an id or a name to `columns`, with its beginning and its end, which tells it from others.

    >>> shorten_inside("a-long-name.1.12", 12)
    'a-lon...1.12'
    """
    if width(text) <= columns:
        return text
    room = max(0, columns - len(ELLIPSIS))
    tail = _head(text[::-1], room // 2)[::-1]
    return shorten(_head(text, room - width(tail)) + ELLIPSIS + tail, columns)


def _head(text: str, columns: int) -> str:
    """Return as much of the beginning of a text as fits."""
    for i, char in enumerate(text):
        columns -= _char_width(char)
        if columns < 0:
            return text[:i]
    return text


def wrap(text: str, columns: int, *, indent: str = "") -> list[str]:
    """Break a line between words into lines of at most `columns`, those after the first indented; within a
    word only where it is longer than a line.

    >>> wrap("the model refused the request", 12, indent="  ")
    ['the model', '  refused', '  the', '  request']
    >>> wrap("漢字漢字", 4), wrap("", 4)
    (['漢字', '漢字'], [''])
    """
    lines, line, start = [], "", 0
    for word in text.split(" "):
        longer = f"{line} {word}" if start else word
        start = 1
        if width(longer) <= columns:
            line = longer
            continue
        if line.strip():
            lines.append(line.rstrip())
        line = indent + word if lines else word  # without the spaces before it, which need not fit
        while width(line) > columns and (part := _head(line, columns)).strip():
            lines.append(part)
            line = indent + line[len(part) :]
    return [*lines, line.rstrip()]


def uncut(names: Sequence[str], right: Sequence[str] = ()) -> Table:
    """Return a table of measurements, each of which is seen whole: where it has room."""
    return Table(tuple(Column(name, right=name in right) for name in names))


def fit(table: Table, rows: Sequence[Sequence[str]], room: int) -> dict[int, int]:
    """Return the columns of a table that are shown in `room` columns, by their position, with their widths.

    Columns are left out while not even the least widths of all have room. Then the room is shared evenly by
    those that need more.
    """
    columns = table.columns
    needed = {i: max(map(width, cells)) for i, cells in enumerate(zip(table.names, *rows, strict=True))}
    given = {
        i: min(needed[i], max(column.least, width(column.name))) if column.least else needed[i]
        for i, column in enumerate(columns)
    }
    for i in sorted((i for i in given if columns[i].drop), key=lambda i: columns[i].drop):
        if _excess(given, room) > 0:
            del given[i]
    while _excess(given, room) > 0 and (widest := max(given.values())) > 1:
        given[next(i for i in given if given[i] == widest)] -= 1
    _share(given, needed, room)
    for i in [i for i in given if columns[i].spill]:
        # what is on lines of its own needs no width here
        if given[i] < needed[i]:
            fitting = [width(row[i]) for row in rows if width(row[i]) <= given[i]]
            given[i] = min(given[i], max([width(columns[i].name), *fitting]))
            needed[i] = given[i]
    _share(given, needed, room)
    return given


def _share(given: dict[int, int], needed: Mapping[int, int], room: int) -> None:
    """Make columns wider, the narrowest first, while they need it and there is room."""
    while _excess(given, room) < 0 and (hungry := [i for i in given if given[i] < needed[i]]):
        given[min(hungry, key=given.__getitem__)] += 1


def _excess(widths: Mapping[int, int], room: int) -> int:
    """Return by how many columns a line is too long."""
    return sum(widths.values()) + len(GAP) * (len(widths) - 1) - room


class DrawnTable(NamedTuple):
    """The lines of a table, and whether a cell of it is cut."""

    lines: list[str]
    is_cut: bool

    def __str__(self) -> str:
        return "\n".join(self.lines)


def draw(
    table: Table,
    rows: Sequence[Sequence[str]],
    *,
    below: Sequence[str] = (),
    columns: int | None = None,
    coloured: bool = False,
) -> DrawnTable:
    """Draw rows below the heads of their columns, in lines of at most `columns` if there is a terminal. After
    each row stands its line of `below`, as it is, if that is not "".

    >>> print(draw(Table((key("FD"), number("CHARS"))), [["fd:1", "7"], ["fd:12", "120"]]))
    FD     CHARS
    fd:1       7
    fd:12    120
    """
    shown = [[show_controls(cell, keep="") for cell in row] for row in rows]
    if columns is None:
        columns = sum(max(map(width, cells)) + len(GAP) for cells in zip(table.names, *shown, strict=True))
    layout = fit(table, shown, columns)
    lines: list[str] = [_aligned(table, layout, table.names, heading=True, coloured=coloured)]
    is_cut = False
    for row, more in zip_longest(shown, below, fillvalue=""):
        cells, at = list(row), 0
        after: list[str] = []
        above: list[str] = []
        for i, room in layout.items():
            if width(cells[i]) > room:
                spill = table.columns[i].spill
                if spill == "before":
                    above += _alone(cells[i], at, columns)
                elif spill == "after":
                    after = wrap(cells[i], columns - SPILL_INDENT)
                is_cut = is_cut or not spill
                cells[i] = "" if spill else shorten(cells[i], room)
            at += room + len(GAP)
        lines += above
        if any(cells[i] for i in layout) or not (above or after):
            lines.append(_aligned(table, layout, cells, coloured=coloured))
        if len(after) > SPILL_LINES:
            is_cut = True
            last = _head(after[SPILL_LINES - 1], columns - SPILL_INDENT - len(GAP + ELLIPSIS))
            after = [*after[: SPILL_LINES - 1], f"{last} {ELLIPSIS}"]
        lines += [" " * SPILL_INDENT + line for line in after]
        lines += [more] if more else []
    return DrawnTable(lines, is_cut)


def _alone(cell: str, at: int, columns: int) -> Iterator[str]:
    """Yield a cell on lines of its own, below its head where it fits there."""
    if at + width(cell) <= columns:
        yield " " * at + cell
        return
    yield from wrap(cell, columns, indent=GAP if columns > 2 * len(GAP) else "")


def _aligned(
    table: Table,
    layout: Mapping[int, int],
    cells: Sequence[str],
    *,
    heading: bool = False,
    coloured: bool = False,
) -> str:
    aligned = []
    for i, room in layout.items():
        column, cell = table.columns[i], shorten(cells[i], room)
        fill = " " * (room - width(cell))
        if coloured and heading:
            cell = paint(cell, "heading")
        elif coloured and column.name == "STATE":
            cell = paint_state(cell)
        aligned.append(fill + cell if column.right else cell + fill)
    return GAP.join(aligned).rstrip()


FACT_STYLES = {"PROBLEM": "bad", "note": "busy"}
"""The names of facts that are painted, others as heads."""


def facts(pairs: Sequence[tuple[str, str]], *, columns: int | None = None, coloured: bool = False) -> str:
    """Format pairs of a name and a value, one per line; a long value goes on below itself.

    >>> print(facts([("fd", "fd:1"), ("source", "text")]))
    fd      fd:1
    source  text
    """
    longest = max((width(name) for name, _ in pairs), default=0)
    lines = []
    for name, value in pairs:
        shown = show_controls(value, keep="")
        parts = [shown] if columns is None else wrap(shown, max(MIN_VALUE, columns - longest - len(GAP)))
        painted = paint(name, FACT_STYLES.get(name, "heading")) if coloured else name
        head = painted + " " * (longest - width(name))
        lines += [f"{' ' * longest if i else head}{GAP}{part}" for i, part in enumerate(parts)]
    return "\n".join(lines)
