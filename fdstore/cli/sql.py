"""The verb sql: run SQL over stored tables, and print the result."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

import click

from fdstore.cli import output
from fdstore.cli.session import CliSession, raw_option, run_on, verb
from fdstore.cli.tables import Column, Table, fit
from fdstore.text.layout import show_controls
from fdstore.text.quantities import format_count

if TYPE_CHECKING:
    from fdstore.sql.printing import Form
    from fdstore.wire.operation import Operation

SHOWN_ROWS = 1000
"""The rows of a table that is printed."""

BLOCK_BYTES = 1 << 20
MAX_CELL = 1000
MIN_COLUMNS = 8
"""What a column keeps where the terminal is narrow; the last ones are left out first."""


@verb
@click.argument("process", metavar="PROC")
@click.argument("given", metavar="[NAME=]SELECTOR... QUERY", nargs=-1, required=True)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with all rows.")
@raw_option
def sql(session: CliSession, process: str, given: tuple[str, ...], as_csv: bool, raw: bool) -> None:
    """Run a query in DuckDB's SQL over stored texts, and print the result.

    CSV, JSON, JSON lines and Parquet have their columns, any other text the columns line and text. One text
    is the table content; several are named. A query can read these texts and nothing else. --json prints an
    object for each row.

    \b
    fdstore sql triage fd:1 'SELECT city, sum(people) FROM content GROUP BY city'
    fdstore sql triage a=fd:1 b=name:found.json#J/results 'SELECT * FROM a JOIN b USING (id)'
    """
    if as_csv and session.as_json:
        raise click.UsageError("choose one of --csv and --json")
    *texts, query = given
    tables = _tables(texts)
    take: Callable[[BinaryIO, int], Operation[None]] = _print_table
    if as_csv or session.as_json:
        take = partial(_print_lines, raw=raw)

    from fdstore.setup.optional_packages import require

    require(("duckdb",), "sql")

    from fdstore.sql.queries import run_query, tables_of

    with session.process(process) as opened:
        chosen = tables_of(None, tables) if isinstance(tables, dict) else tables_of(tables, None)
        form: Form = "json" if session.as_json else "csv"
        run_on(opened, run_query(opened.handle, query, chosen, take, form=form))


def _tables(texts: Sequence[str]) -> str | dict[str, str]:
    """Return the one text of a query, or several by their names."""
    if not texts:
        raise click.UsageError("name the text that the query is about, and the query: fd:1 'FROM content'")
    named = [text.partition("=") for text in texts]
    if all(name.isidentifier() and mark for name, mark, _ in named):
        tables = {name: text for name, _, text in named}
        if len(tables) < len(texts):
            raise click.UsageError("give each of several texts a name of its own: a=fd:1 b=fd:2")
        return tables
    if len(texts) > 1:
        raise click.UsageError("give each of several texts a name: a=fd:1 b=fd:2")
    return texts[0]


def _print_lines(file: BinaryIO, _: int, *, raw: bool) -> Operation[None]:
    while lines := file.readlines(BLOCK_BYTES):
        output.content(b"".join(lines), raw=raw)
    return
    yield  # makes this a generator


def _print_table(file: BinaryIO, rows: int) -> Operation[None]:
    shown = islice(csv.reader(io.TextIOWrapper(file, "utf-8", newline="")), SHOWN_ROWS + 1)
    head, *cells = [[show_controls(cell[:MAX_CELL], keep="") for cell in row or [""]] for row in shown]
    columns = [
        Column(name, right=bool(values) and all(map(_is_number, values)), least=MIN_COLUMNS, drop=drop)
        for drop, (name, *values) in zip(range(len(head), 0, -1), zip(head, *cells, strict=True), strict=True)
    ]
    table = Table(tuple(columns), whole="--csv and --json have all of it")
    output.table(table, cells)
    room = output.columns()
    if room is not None and (left_out := len(head) - len(fit(table, cells, room))):
        output.say(f"{format_count(left_out, 'more column')}; name those to show, or use --csv")
    if rows > len(cells):
        output.say(f"{format_count(rows - len(cells), 'more row')}; --csv and --json print all")
    return
    yield  # makes this a generator


def _is_number(cell: str) -> bool:
    return cell == "" or cell.lstrip("-").replace(".", "", 1).isdigit()
