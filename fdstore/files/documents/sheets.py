"""XLSX and ODS: the values of each sheet as CSV, by calamine.

The row n of a sheet is the line n after `[sheet NAME]`; in place of more than `MAX_EMPTY` empty rows stands
the number of the next one, `[row N]`. Values of formulas are those that the program that saved the file
computed.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import python_calamine as calamine

from fdstore.files.documents.parts import Parts
from fdstore.files.documents.writing import NoText, TextWriter

MANIFEST = "META-INF/manifest.xml"
MAX_EMPTY = 1000


class Row(NamedTuple):
    """A row with a value: its number from 1, and its values from the first column on."""

    number: int
    values: list[Any]


def read(file: BinaryIO, writer: TextWriter) -> None:
    """Write the values of a workbook. Raises `NoText`."""
    if _has_password(Parts(file)):
        raise NoText("encrypted", "it is encrypted, and has a password")
    file.seek(0)
    write_workbook(open_workbook(file), writer, _rows_of)


def open_workbook(file: BinaryIO) -> calamine.CalamineWorkbook:
    """Open a workbook. Raises `NoText`."""
    try:
        return calamine.CalamineWorkbook.from_filelike(file)
    except calamine.CalamineError as error:
        raise NoText("damaged", f"it is damaged: {error}") from error


def _rows_of(name: str, table: calamine.CalamineSheet) -> Iterator[Row]:
    left = [""] * (table.start[1] if table.start else 0)  # columns before the first that is used
    for number, row in enumerate(table.iter_rows(), 1):
        yield Row(number, [*left, *row])


def write_workbook(
    workbook: calamine.CalamineWorkbook,
    writer: TextWriter,
    rows_of: Callable[[str, calamine.CalamineSheet], Iterable[Row]],
) -> None:
    """Write the sheets of a workbook, each with the rows that `rows_of` makes of its name and its table.
    Raises `NoText`."""
    for sheet in workbook.sheets_metadata:
        hidden = "" if sheet.visible == calamine.SheetVisibleEnum.Visible else " (hidden)"
        is_table = sheet.typ == calamine.SheetTypeEnum.WorkSheet
        writer.mark(f"sheet {sheet.name}{hidden}{'' if is_table else ' (no table)'}")
        if not is_table:
            continue
        try:
            _write_rows(rows_of(sheet.name, workbook.get_sheet_by_name(sheet.name)), writer)
        except calamine.CalamineError as error:
            raise NoText("damaged", f"its sheet {sheet.name!r:.80} is damaged: {error}") from error
        except OverflowError as error:
            raise NoText("date", f"its sheet {sheet.name!r:.80} has an impossible date: {error}") from error


def _write_rows(rows: Iterable[Row], writer: TextWriter) -> None:
    """Write rows as lines, the row n as the line n, but for empty ones if there are many."""
    done = 0
    for number, values in rows:
        line = line_of(values)
        if not line:
            continue
        empty = number - done - 1
        if empty > MAX_EMPTY:
            writer.mark(f"row {number}")
        else:
            for _ in range(empty):
                writer.text("")
        writer.text(line)
        done = number


def _has_password(parts: Parts) -> bool:
    """Return whether an ODS says that its parts are encrypted. An XLSX with a password is no zip archive."""
    found: list[str] = []
    if MANIFEST in parts:
        parts.parse(MANIFEST, lambda name, _: found.append(name))
    return "encryption-data" in found


def line_of(row: Sequence[Any]) -> str:
    """Return a row as a line of CSV; an empty one is an empty line.

    >>> line_of([1.0, 0.5, True, "one, two\\nthree", "", dt.datetime(2024, 2, 1), dt.time(9, 30)])
    '1,0.5,TRUE,"one, two three",,2024-02-01,09:30:00'
    >>> line_of(["", ""])
    ''
    """
    if all(value == "" for value in row):
        return ""
    values = [shown(value) for value in row]
    plain = ",".join(values)
    if '"' not in plain and plain.count(",") == len(values) - 1:
        return plain  # most rows; the writer takes several times as long
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def shown(value: Any) -> str:
    """Return a value as text: dates and times in ISO 8601, durations as hours, minutes and seconds."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case dt.datetime() if value.time() == dt.time():
            return value.date().isoformat()
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            minutes, seconds = divmod(round(value.total_seconds()), 60)
            return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
        case float():
            return repr(value)
        case _:
            return " ".join(str(value).splitlines())
