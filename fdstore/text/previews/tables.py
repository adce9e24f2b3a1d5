"""Tables as CSV, TSV and the like: header, columns, first and last rows.

A text counts as one if each row that is looked at has as many cells as the header, whose cells are distinct
names. Rows are those of the csv module: a quoted cell may contain a line end.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import NamedTuple

from fdstore.text.previews.extremes import are_dates, between
from fdstore.text.previews.sample import JUDGED_LINES, SHOWN_TAIL_CHARS, Outline, Sample, excerpt, part_of

DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
MIN_ROWS = 4
MAX_COLUMNS = 200
MAX_CELLS = 60_000
"""The cells by which columns are described; rows are counted in all of the text that is looked at."""

SHOWN_ROWS = 3
_CELL_CHARS = 40

_NUMBER = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?")
_INTEGER = re.compile(r"[-+]?\d++")


def table(sample: Sample) -> Outline | None:
    """Describe a table."""
    if len(sample.first) <= MIN_ROWS:
        return None  # also of few very long lines
    head = sample.first[0]
    for delimiter, name in sorted(DELIMITERS.items(), key=lambda each: -head.count(each[0])):
        if not 1 <= head.count(delimiter) < MAX_COLUMNS:
            continue
        # most texts are none, which the first lines show
        judged = sample.head_lines[:JUDGED_LINES]
        if _table(judged, delimiter, is_cut=len(judged) < sample.total_lines) is None:
            continue
        if (found := _table(sample.head_lines, delimiter, is_cut=not sample.whole)) is not None:
            return _outline(sample, found, name)
    return None


class _Table(NamedTuple):
    """A table: its columns, each with its name first, of the first rows; the rows after the header, and how
    many lines they are with it."""

    columns: list[Sequence[str]]
    rows: int
    lines: int


def _table(lines: list[str], delimiter: str, *, is_cut: bool) -> _Table | None:
    """Return the table that the lines are; None if they are none of this delimiter. The last row of a text
    that is cut may be a part of one, and is left out then."""
    while lines and not lines[-1]:
        lines = lines[:-1]
    try:
        header = next(csv.reader(lines[:1], delimiter=delimiter), [])
    except csv.Error:
        return None
    if not _is_header(header) or len(lines) <= MIN_ROWS:
        return None
    described = MAX_CELLS // len(header)
    if not any('"' in line or "\r" in line for line in lines):
        # each line is a row, which needs no csv
        if set(map(methodcaller("count", delimiter), lines)) != {len(header) - 1}:
            return None
        cells = delimiter.join(lines[:described]).split(delimiter)
        columns: list[Sequence[str]] = [cells[number :: len(header)] for number in range(len(header))]
        return _Table(columns, len(lines) - 1, len(lines))
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter, strict=True)
    first: list[list[str]] = []
    rows = used = 0
    try:
        for row in reader:
            if len(row) != len(header):
                return None
            if rows < described:
                first.append(row)
            rows, used = rows + 1, reader.line_num
    except csv.Error:
        if not is_cut or reader.line_num < len(lines):
            return None
    return _Table(list(zip(*first, strict=True)), rows - 1, used) if rows > MIN_ROWS else None


def _is_header(cells: list[str]) -> bool:
    names = [cell.strip() for cell in cells]
    return (
        1 < len(names) == len(set(names))
        and all(0 < len(name) <= 60 and not _NUMBER.fullmatch(name) for name in names)
        # prose has blanks behind its commas, and code its brackets
        and not any(cell.startswith(" ") or set(cell) & set("(){}[]<>=") for cell in cells)
    )


def _outline(sample: Sample, table: _Table, delimiter: str) -> Outline:
    of = "all" if sample.whole else sample.range_of_first(table.lines)
    part = "" if of == "all" else f"{part_of(of)}; the text has {sample.total_lines} lines"
    count = len(table.columns)
    lines = [f"{count} columns, separated by {delimiter}; {table.rows} rows after the header{part}"]
    described = len(table.columns[0]) - 1
    if described < table.rows:
        lines.append(f"the columns in the first {described} rows:")
    for number, (name, *cells) in enumerate(table.columns, 1):
        lines.append(f"column {number}: {excerpt(name)} - {_column(cells)}")
    lines += [f"{number}:{excerpt(line)}" for number, line in enumerate(sample.first[: SHOWN_ROWS + 1], 1)]
    return Outline(kind="table", of=of, lines=lines, tail_chars=SHOWN_TAIL_CHARS)


def _column(cells: list[str]) -> str:
    """Return what the cells of a column are."""
    filled = list(filter(None, cells))
    empty = f", {len(cells) - len(filled)} empty" if len(filled) < len(cells) else ""
    if not filled:
        return f"{len(cells)} empty"
    different = set(filled)
    order: Callable[[str], float | str] | None = None
    if all(map(_INTEGER.fullmatch, different)):
        kind, order = "integers", int
    elif all(map(_NUMBER.fullmatch, different)):
        kind, order = "numbers", float
    elif are_dates(different):
        kind, order = "dates", str
    else:
        kind = f"texts, {len(different)} different" if len(different) > 1 else "the same text"
    if order is None or max(map(len, different)) > _CELL_CHARS:
        return f"{kind}, e.g. {_one_line(filled[0])}{empty}"
    ends = between(min(different, key=order), max(different, key=order))
    return f"{len(filled)} {kind}, {ends}{empty}"


def _one_line(cell: str) -> str:
    return excerpt(cell, _CELL_CHARS).replace("\n", "\\u{a}").replace("\t", "\\u{9}")
