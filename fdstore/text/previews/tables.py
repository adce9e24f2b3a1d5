"""Tables as CSV, TSV and the like: header, columns, first and last rows.

A text counts as one if each row that is looked at has as many cells as the header, whose cells are distinct
names. Rows are those of the csv module: a quoted cell may contain a line end.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from fdstore.text.previews.sample import SHOWN_TAIL_CHARS, Outline, Sample, excerpt, part_of

DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
MIN_ROWS = 4
MAX_COLUMNS = 200
SHOWN_ROWS = 3
_CELL_CHARS = 40

_NUMBER = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?")
_INTEGER = re.compile(r"[-+]?\d++")


def table(sample: Sample) -> Outline | None:
    """Describe a table."""
    if len(sample.first) <= MIN_ROWS:
        return None
    head = sample.first[0]
    for delimiter, name in sorted(DELIMITERS.items(), key=lambda each: -head.count(each[0])):
        if not 1 <= head.count(delimiter) < MAX_COLUMNS:
            continue
        rows = _rows(sample.first, delimiter)
        if rows is not None:
            return _outline(sample, rows, name)
    return None


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]] | None:
    """Return the rows; None if this is not a table of this delimiter."""
    columns, rows = 0, []
    while lines and not lines[-1]:
        lines = lines[:-1]
    try:
        if not _is_header(next(csv.reader(lines[:1], delimiter=delimiter), [])):
            return None
        for row in csv.reader((f"{line}\n" for line in lines), delimiter=delimiter, strict=True):
            columns = columns or len(row)
            if len(row) != columns:
                return None
            rows.append(row)
    except csv.Error:
        return None
    return rows if len(rows) > MIN_ROWS else None


def _is_header(cells: list[str]) -> bool:
    names = [cell.strip() for cell in cells]
    return (
        1 < len(names) == len(set(names))
        and all(0 < len(name) <= 60 and not _NUMBER.fullmatch(name) for name in names)
        # prose has blanks behind its commas, and code its brackets
        and not any(cell.startswith(" ") or set(cell) & set("(){}[]<>=") for cell in cells)
    )


def _outline(sample: Sample, rows: list[list[str]], delimiter: str) -> Outline:
    header, body = rows[0], rows[1:]
    of = sample.range_of_first(len(sample.first))
    part = "" if of == "all" else f"{part_of(of)}; the text has {sample.total_lines} lines"
    lines = [f"{len(header)} columns, separated by {delimiter}; {len(body)} rows after the header{part}"]
    for number, name in enumerate(header):
        lines.append(f"column {number + 1}: {excerpt(name)} - {_column([row[number] for row in body])}")
    lines += [f"{number}:{excerpt(line)}" for number, line in enumerate(sample.first[: SHOWN_ROWS + 1], 1)]
    return Outline(kind="table", of=of, lines=lines, tail_chars=SHOWN_TAIL_CHARS)


def _column(cells: list[str]) -> str:
    """Return what the cells of a column are."""
    filled = [cell for cell in cells if cell]
    empty = f", {len(cells) - len(filled)} empty" if len(filled) < len(cells) else ""
    if not filled:
        return f"{len(cells)} empty"
    if all(map(_INTEGER.fullmatch, filled)):
        kind = "integers"
    elif all(map(_NUMBER.fullmatch, filled)):
        kind = "numbers"
    else:
        different = len(set(filled))
        kind = f"texts, {different} different" if different > 1 else "the same text"
    return f"{kind}, e.g. {_one_line(filled[0])}{empty}"


def _one_line(cell: str) -> str:
    return excerpt(cell, _CELL_CHARS).replace("\n", "\\u{a}").replace("\t", "\\u{9}")
