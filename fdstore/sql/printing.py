"""Results of DuckDB as it prints them, in CSV or JSON.

Python has no values for some of DuckDB's own (nanoseconds, months, infinite dates, numbers of 4 bytes), so
the query is wrapped in one that makes texts of its columns. Structs, lists and maps are JSON, with null for
NaN and infinities. In CSV NULL is an empty field, and an empty text is `""`.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

import duckdb

from fdstore.errors import InvalidArgument

ROWS_AT_A_TIME = 10_000

Form: TypeAlias = Literal["csv", "json"]
"""CSV with a header, or an object of JSON in each line."""


class PrintedRows(NamedTuple):
    """The columns of a result with their types, and its rows as DuckDB prints them."""

    names: Sequence[str]
    kinds: Sequence[Any]
    rows: Iterator[Sequence[str | None]]


def write_result(connection: duckdb.DuckDBPyConnection, query: str, form: Form, target: Any) -> int:
    """Run a query and write its result to a binary file. Return the number of rows. Raises `InvalidArgument`
    for one without a result, and the errors of DuckDB."""
    found = _printed(connection, query)
    count = 0
    text = io.TextIOWrapper(target, "utf-8", newline="", write_through=True)
    line: Callable[[Sequence[str | None]], str] = _line
    try:
        if form == "csv":
            text.write(_line(found.names))
        else:
            line = partial(_object, list(_keys(found.names)), [_json_kind(kind) for kind in found.kinds])
        for count, row in enumerate(found.rows, 1):  # noqa: B007
            text.write(line(row))
    finally:
        text.detach()
    return count


def _printed(connection: duckdb.DuckDBPyConnection, query: str) -> PrintedRows:
    statements = connection.extract_statements(query)
    for statement in statements[:-1]:
        connection.execute(statement)
    relation = connection.sql(statements[-1].query) if statements else None
    if relation is None or not relation.columns:
        raise InvalidArgument("query", "it has no result; write a SELECT")
    last = statements[-1]
    kinds = relation.types
    if "SELECT" in str(last.type):
        columns = [f"c{number}" for number in range(len(kinds))]  # names may occur twice
        query = last.query.rstrip().rstrip(";")
        found = connection.execute(
            f"SELECT {_texts(columns, kinds)} FROM ({query}\n) AS found({', '.join(columns)})"
        )
        rows: Iterator[Any] = chain.from_iterable(iter(lambda: found.fetchmany(ROWS_AT_A_TIME), []))
    else:  # was run
        columns = [f"#{number}" for number in range(1, len(kinds) + 1)]
        rows = iter(relation.project(_texts(columns, kinds)).fetchall())
    return PrintedRows(relation.columns, kinds, map(partial(_with_nulls, _nested(kinds)), rows))


_NESTED = ("list", "array", "struct", "tuple", "map")


def _nested(kinds: Sequence[Any]) -> list[int]:
    return [number for number, kind in enumerate(kinds) if kind.id in _NESTED]


def _texts(columns: Sequence[str], kinds: Sequence[Any]) -> str:
    """Return the expressions of the columns as texts."""
    return ", ".join(map(_as_text, columns, kinds))


def _as_text(column: str, kind: Any) -> str:
    if kind.id not in _NESTED:
        return f"CAST({column} AS VARCHAR)"
    as_texts, as_numbers = _in_place_of_float(kind, "VARCHAR"), _in_place_of_float(kind, "DOUBLE")
    if as_texts != as_numbers:  # JSON would show the digits of a longer number
        column = f"CAST(CAST({column} AS {as_texts}) AS {as_numbers})"
    return f"CAST(to_json({column}) AS VARCHAR)"


def _in_place_of_float(kind: Any, other: str) -> str:
    """Return a type in SQL with `other` in the place of FLOAT."""
    match kind.id:
        case "float":
            return other
        case "list":
            [(_, inner)] = kind.children
            return f"{_in_place_of_float(inner, other)}[]"
        case "array":
            (_, inner), (_, size) = kind.children
            return f"{_in_place_of_float(inner, other)}[{size}]"
        case "map":
            (_, key), (_, value) = kind.children
            return f"MAP({key}, {_in_place_of_float(value, other)})"
        case "tuple":
            inner_kinds = [_in_place_of_float(inner, other) for _, inner in kind.children]
            return f"TUPLE({', '.join(inner_kinds)})"
        case "struct" if all(name for name, _ in kind.children):
            quoted = ['"' + name.replace('"', '""') + '"' for name, _ in kind.children]
            inner_kinds = [_in_place_of_float(inner, other) for _, inner in kind.children]
            return f"STRUCT({', '.join(map(' '.join, zip(quoted, inner_kinds, strict=True)))})"
    return str(kind)


_NO_NUMBER = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|-?(?:NaN|Infinity)')


def _with_nulls(nested: Sequence[int], row: Sequence[str | None]) -> Sequence[str | None]:
    """Return a row with null for what JSON has no numbers for in its lists and structs."""
    if not nested:
        return row
    found = list(row)
    for number in nested:
        text = found[number]
        if text is not None and ("NaN" in text or "Infinity" in text):
            found[number] = _NO_NUMBER.sub(lambda hit: hit[1] or "null", text)
    return found


def _line(values: Sequence[str | None]) -> str:
    r"""Return a row as a line of CSV.

    >>> _line(["1", None, "", "one, two"])
    '1,,"","one, two"\n'
    """
    return ",".join(map(_field, values)) + "\n"


def _field(text: str | None) -> str:
    if text is None:
        return ""
    is_plain = text and not any(mark in text for mark in ',"\r\n')
    return text if is_plain else f'"{text.replace(chr(34), chr(34) * 2)}"'


_NUMBERS = ("integer", "bigint", "smallint", "tinyint", "hugeint", "double", "float", "decimal")
_JSON_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")


def _json_kind(kind: Any) -> Literal["text", "number", "json"]:
    if kind.id in _NESTED or kind.id == "boolean":
        return "json"
    return "number" if kind.id.removeprefix("u") in _NUMBERS else "text"


def _keys(names: Iterable[str]) -> Iterator[str]:
    """Yield the names of columns, those that occur again with a number.

    >>> list(_keys(["a", "b", "a", "a"]))
    ['a', 'b', 'a_1', 'a_2']
    """
    seen: set[str] = set()
    for name in names:
        key, number = name, 0
        while key in seen:
            number += 1
            key = f"{name}_{number}"
        seen.add(key)
        yield key


def _object(keys: Sequence[str], kinds: Sequence[str], row: Sequence[str | None]) -> str:
    """Return a row as a line with an object of JSON.

    >>> _object(["a", "b", "c"], ["text", "number", "json"], ["x", "1.50", None])
    '{"a": "x", "b": 1.50, "c": null}\\n'
    """
    fields = map(_pair, keys, kinds, row)
    return f"{{{', '.join(fields)}}}\n"


def _pair(key: str, kind: str, text: str | None) -> str:
    if text is None or (kind == "number" and not _JSON_NUMBER.fullmatch(text)):
        value = "null"
    else:
        value = text if kind != "text" else json.dumps(text, ensure_ascii=False)
    return f"{json.dumps(key, ensure_ascii=False)}: {value}"
