"""XLSX and ODS whose sheets are mostly empty: read at the cost of the cells that they hold.

calamine makes a rectangle of a sheet, from its first used cell to its last one: 400 GB for a cell in the far
corner. So here the cells are moved together before it reads them, in rows of `PER_ROW`, and their places are
noted. What a cell means (texts of other parts, dates by styles) is still calamine's work:

    A1 = x, XFD1048576 = y     ->     A1 = x, B1 = y, and the places (1, 1), (1048576, 16384)

A number that no date can have loses its style on the way: calamine raises for it otherwise.
"""

from __future__ import annotations

import io
import re
import zipfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO
from xml.parsers import expat

from fdstore.files.documents.parts import Parts, refuse_entities
from fdstore.files.documents.sheets import Row, open_workbook, write_workbook
from fdstore.files.documents.writing import NoText, TextWriter

PER_ROW = 1000
MAX_ROWS, MAX_COLUMNS = 1 << 24, 1 << 14
"""The largest sheets that programs write."""

LAST_DATE = 2_958_466
"""The number of the day after 9999-12-31."""

CONTENT = "content.xml"
_TAG = re.compile(rb"<([^\s/>]+)((?:[^>\"']|\"[^\"]*\"|'[^']*')*)>")
_PLACE = re.compile(rb"\sr\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_STYLE = re.compile(rb"\ss\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_CELL = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,7})")
_REPEATED = re.compile(rb"\s[\w.-]*:?number-columns-repeated\s*=\s*(?:\"[^\"]*\"|'[^']*')")


class _Places:
    """Where the cells of a sheet were, in the order of the file. A cell may fill several columns, and a row
    stand for several."""

    def __init__(self) -> None:
        self.rows, self.columns, self.widths = array("L"), array("L"), array("L")
        self.repeated: dict[int, int] = {}
        self._written = 0

    def add(self, row: int, column: int, width: int = 1) -> None:
        if self.rows and (row, column) <= (self.rows[-1], self.columns[-1]):
            raise NoText("damaged", "it is damaged: its cells are not in order")
        if not 1 <= row <= MAX_ROWS or column + width - 1 > MAX_COLUMNS:
            raise NoText("damaged", "it is damaged: a cell is outside of any sheet")
        self.rows.append(row)
        self.columns.append(column)
        self.widths.append(width)

    def rows_with(self, values: Iterable[Any]) -> Iterator[Row]:
        """Yield the rows that have cells, with the values of these. Each is as wide as the widest, unless
        that would be mostly nothing."""
        last = max((at + wide - 1 for at, wide in zip(self.columns, self.widths, strict=True)), default=0)
        is_table = last * len(set(self.rows)) <= 10 * len(self.rows) + PER_ROW
        row: list[Any] = []
        number = 0
        for at, column, width, value in zip(self.rows, self.columns, self.widths, values, strict=False):
            if at != number:
                yield from self._padded(number, row, last if is_table else 0)
                number, row = at, []
            row += [""] * (column - 1 - len(row)) + [value] * width
        yield from self._padded(number, row, last if is_table else 0)

    def _padded(self, number: int, row: list[Any], width: int) -> Iterator[Row]:
        row += [""] * (width - len(row))
        for each in range(number, number + self.repeated.get(number, 1) if row else number):
            yield Row(each, row)


def read(file: BinaryIO, writer: TextWriter) -> None:
    """Write the values of a workbook, as `sheets.read` does. Raises `NoText`."""
    parts = Parts(file)
    made = io.BytesIO()
    if CONTENT in parts:
        places = _compact(parts, made, {CONTENT: _compact_open})[CONTENT]
        workbook = open_workbook(made)
        named = dict(zip(workbook.sheet_names, places, strict=False))
    else:
        found = _sheets_of(parts)
        compacted = _compact(parts, made, dict.fromkeys(found.values(), _compact_office))
        workbook = open_workbook(made)
        named = {name: compacted[path][0] for name, path in found.items() if path in compacted}

    def rows_of(name: str, table: Any) -> Iterable[Row]:
        cells = (value for row in table.iter_rows() for value in row)
        return named[name].rows_with(cells) if name in named else ()

    write_workbook(workbook, writer, rows_of)


def _sheets_of(parts: Parts) -> dict[str, str]:
    """Return the paths of the sheets of an XLSX by their names."""
    main = parts.main("xl/workbook.xml")
    related = parts.relations(main)
    found: dict[str, str] = {}

    def start(name: str, given: Mapping[str, str]) -> None:
        relation = related.get(given.get("relation", "")) if name == "sheet" else None
        if relation is not None and relation.kind == "worksheet" and relation.target in parts:
            found[given.get("name", "")] = relation.target

    parts.parse(main, start)
    return found


_Compact = Callable[[bytes, BinaryIO], list[_Places]]


def _compact(parts: Parts, made: BinaryIO, changed: Mapping[str, _Compact]) -> dict[str, list[_Places]]:
    """Copy a document with these parts compacted. Return the places of the cells of each part."""
    found = {}
    with zipfile.ZipFile(made, "w") as archive:
        for path in parts.paths:
            if path not in changed:
                with archive.open(path, "w") as copy:
                    copy.writelines(parts.blocks(path))
                continue
            target = io.BytesIO()
            try:
                found[path] = changed[path](b"".join(parts.blocks(path)), target)
            except (expat.ExpatError, ValueError) as error:
                raise NoText("damaged", f"its part {path:.80} is damaged: {error}") from error
            archive.writestr(path, target.getbuffer())
    made.seek(0)
    return found


def _compact_office(data: bytes, target: BinaryIO) -> list[_Places]:
    """Write the part of a sheet of an XLSX with its cells together."""
    places, parser = _Places(), expat.ParserCreate()
    row = column = copied = cell_at = count = 0
    prefix, value, kind, style = b"", "", "", ""
    has_value = False

    def start(name: str, given: Mapping[str, str]) -> None:
        nonlocal row, column, copied, cell_at, prefix, value, kind, style, has_value
        match name.rpartition(":")[2]:
            case "sheetData":
                tag = _tag_at(data, parser.CurrentByteIndex)
                prefix = tag[1].rpartition(b":")[0]
                prefix += b":" if prefix else b""
                target.write(data[copied : tag.end()])
                copied = tag.end()
            case "row":
                row, column = int(given.get("r", row + 1)), 0
            case "c":
                row, column = _numbers_of(given["r"]) if "r" in given else (row, column + 1)
                cell_at, value, has_value = parser.CurrentByteIndex, "", False
                kind, style = given.get("t", "n"), given.get("s", "")
            case "v" | "is":
                has_value = True

    def text(piece: str) -> None:
        nonlocal value
        if kind == "n" and has_value:
            value += piece

    def end(name: str) -> None:
        nonlocal copied, count, has_value
        match name.rpartition(":")[2]:
            case "c" if has_value:
                has_value = False
                tag = _tag_at(data, cell_at)
                bare = _PLACE.sub(b"", tag[2], count=1)
                if style and kind == "n" and not 0 <= float(value.strip() or 0) < LAST_DATE:
                    bare = _STYLE.sub(b"", bare, count=1)
                if count % PER_ROW == 0:
                    close = b"</%srow>" % prefix if count else b""
                    target.write(close + b'<%srow r="%d">' % (prefix, count // PER_ROW + 1))
                name_of = _letters(count % PER_ROW) + str(count // PER_ROW + 1).encode()
                target.write(b'<%s r="%s"%s>' % (tag[1], name_of, bare))
                target.write(data[tag.end() : parser.CurrentByteIndex] + b"</%s>" % tag[1])
                places.add(row, column)
                count += 1
            case "sheetData":
                if count:
                    target.write(b"</%srow>" % prefix)
                if data[copied - 2 : copied] != b"/>":
                    copied = parser.CurrentByteIndex

    _parse(parser, data, start, end, text)
    target.write(data[copied:])
    return [places]


def _compact_open(data: bytes, target: BinaryIO) -> list[_Places]:
    """Write the content of an ODS with the cells of each table together."""
    found: list[_Places] = []
    parser = expat.ParserCreate()
    depth = row = repeated = column = copied = cell_at = count = width = 0
    prefix = b""
    has_value = False

    def start(name: str, given: Mapping[str, str]) -> None:
        nonlocal depth, row, repeated, column, copied, cell_at, count, width, prefix, has_value
        local = name.rpartition(":")[2]
        if local == "table":
            depth += 1
            if depth == 1:
                tag = _tag_at(data, parser.CurrentByteIndex)
                prefix = tag[1].rpartition(b":")[0] + b":"
                target.write(data[copied : tag.end()])
                copied, row, repeated, count = tag.end(), 0, 1, 0
                found.append(_Places())
        elif depth != 1:
            return
        elif local == "table-row":
            row, column = row + repeated, 0
            repeated = _repeats(given, "number-rows-repeated")
        elif local in ("table-cell", "covered-table-cell"):
            column, width = column + 1, _repeats(given, "number-columns-repeated")
            cell_at, has_value = parser.CurrentByteIndex, any("value" in each for each in given)
        elif local == "p":
            has_value = True

    def end(name: str) -> None:
        nonlocal depth, column, copied, count, has_value
        local = name.rpartition(":")[2]
        if local == "table":
            depth -= 1
            if depth == 0:
                if count:
                    target.write(b"</%stable-row>" % prefix)
                if data[copied - 2 : copied] != b"/>":
                    copied = parser.CurrentByteIndex
        elif depth == 1 and local in ("table-cell", "covered-table-cell"):
            if has_value:
                has_value = False
                tag = _tag_at(data, cell_at)
                if count % PER_ROW == 0:
                    close = b"</%stable-row>" % prefix if count else b""
                    target.write(close + b"<%stable-row>" % prefix)
                bare = _REPEATED.sub(b"", tag[2], count=1)
                target.write(b"<%s%s>" % (tag[1], bare))
                if not bare.endswith(b"/"):
                    target.write(data[tag.end() : parser.CurrentByteIndex] + b"</%s>" % tag[1])
                found[-1].add(row, column, width)
                if repeated > 1:
                    found[-1].repeated[row] = repeated
                count += 1
            column += width - 1

    _parse(parser, data, start, end)
    target.write(data[copied:])
    return found


def _parse(
    parser: expat.XMLParserType,
    data: bytes,
    start: Callable[[str, Mapping[str, str]], None],
    end: Callable[[str], None],
    text: Callable[[str], None] | None = None,
) -> None:
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.EntityDeclHandler = refuse_entities
    if text is not None:
        parser.CharacterDataHandler = text
    parser.Parse(data, True)


def _tag_at(data: bytes, at: int) -> re.Match[bytes]:
    found = _TAG.match(data, at)
    if found is None:
        raise ValueError(f"there is no tag at byte {at}")
    return found


def _repeats(given: Mapping[str, str], attribute: str) -> int:
    return max(1, next((int(given[name]) for name in given if name.rpartition(":")[2] == attribute), 1))


def _numbers_of(place: str) -> tuple[int, int]:
    """Return the row and the column of a cell.

    >>> _numbers_of("XFD1048576")
    (1048576, 16384)
    """
    found = _CELL.fullmatch(place)
    if found is None:
        raise ValueError(f"there is no cell {place[:40]!r}")
    column = 0
    for letter in found[1]:
        column = column * 26 + ord(letter) - 64
    return int(found[2]), column


def _letters(column: int) -> bytes:
    """Return the letters of a column, from 0.

    >>> _letters(0), _letters(26), _letters(16383)
    (b'A', b'AA', b'XFD')
    """
    letters = b""
    column += 1
    while column:
        column, digit = divmod(column - 1, 26)
        letters = bytes([65 + digit]) + letters
    return letters
