"""The function `sql` that code of `run_python` calls: a query over texts.

Code gets the rows as a list; of a result with more rows than `MAX_ROWS` it gets a text, stored under the id
of the call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, BinaryIO

from fdstore.errors import InvalidArgument, TooLarge
from fdstore.model.records import Descriptor
from fdstore.programs import text_refs
from fdstore.programs.refusals import NotForCode
from fdstore.results.context import Context
from fdstore.setup.optional_packages import is_installed
from fdstore.store.contents import contents
from fdstore.wire.operation import Operation

MAX_ROWS = 100_000
"""The rows of a result of SQL that code gets as a list; of more it gets a text."""


def select(
    context: Context, query: object, refs: object, slot: str, save: Callable[[], Operation[None]]
) -> Operation[Any]:
    """Run a query over the texts that `refs` names. Return its rows, or the facts of the text that has them;
    `save` runs before that is stored.

    Raises `InvalidArgument`, `NotForCode`, `TooLarge`, and the errors of the query.
    """
    if not is_installed("duckdb"):
        raise NotForCode("sql", "read the texts, and count and join in code")
    if not isinstance(query, str) or not isinstance(refs, dict):
        raise InvalidArgument("query", "sql('SELECT ...', a=text) takes a str, and texts by name")
    from fdstore.sql.queries import run_query, tables_of

    limit = context.python.max_text_bytes

    def take_rows(file: BinaryIO, rows: int) -> Operation[list[Any] | None]:
        if rows > MAX_ROWS:
            return None
        data = file.read(limit + 1)
        if len(data) > limit:
            raise TooLarge("the result", len(data), limit, "select fewer rows or columns", "bytes or more")
        return [
            json.loads(line, parse_int=_whole_number, parse_float=_number) for line in data.split(b"\n")[:-1]
        ]
        yield  # makes this a generator

    tables = tables_of(None, {str(name): text_refs.ref_of(ref) for name, ref in refs.items()})
    found: Any = yield from run_query(context.handle, query, tables, take_rows, form="json")
    return (yield from _store(context, query, tables, slot, save)) if found is None else found


def _store(
    context: Context,
    query: str,
    tables: Mapping[str, object],
    slot: str,
    save: Callable[[], Operation[None]],
) -> Operation[dict[str, Any]]:
    """Store the result of a query as CSV. Return the facts of the text."""
    from fdstore.sql.queries import MEDIA_TYPE, SOURCE, run_query

    if not context.code_may_create:
        raise NotForCode("sql", f"select at most {MAX_ROWS} rows")
    yield from save()

    def store(file: BinaryIO, _: int) -> Operation[Descriptor]:
        size = context.config.default_page_size
        ingested = contents.ingest(context.handle, file, SOURCE, size, media_type=MEDIA_TYPE, call_id=slot)
        return (yield from ingested)

    return text_refs.whole((yield from run_query(context.handle, query, tables, store))).facts


def _whole_number(digits: str) -> int | str:
    """Return a number of DuckDB, which has some of 128 bits, as code gets it: longer ones than 64 bits as
    str, as functions take them."""
    if len(digits) > _MOST_DIGITS:
        return digits
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else digits


_MOST_DIGITS = len(str(2**64))


def _number(digits: str) -> float | str:
    """Return a number with a fraction or an exponent as code gets it: one that a float does not hold, as
    some DECIMALs, as str.

    >>> _number("0.10"), _number("9007199254740993.01"), _number("1e400")
    (0.1, '9007199254740993.01', '1e400')
    """
    number = float(digits)
    try:
        return number if Decimal(repr(number)) == Decimal(digits) else digits
    except InvalidOperation:  # an exponent of many digits
        return digits
