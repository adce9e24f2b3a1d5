"""One query of DuckDB over some files, which it can read and nothing else.

    files -> a view each -> the query -> CSV or JSON, in a file

DuckDB runs in this process, in bounded memory: what needs more goes to a directory that is removed. No other
file, no network and no extension can be reached, and a query cannot change that.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from fdstore.errors import InvalidArgument, MissingExtra, TimedOut, joined
from fdstore.setup.optional_packages import how_to_install
from fdstore.sql.table_file import OBJECT_BYTES, TableFile
from fdstore.text.quantities import format_count

try:
    import duckdb
except ImportError as error:
    raise MissingExtra("duckdb", how_to_install("sql")) from error

from fdstore.sql.printing import Form, write_result

TIMEOUT_S = 60.0
"""The time that a query may take, in seconds."""

INTERRUPT_EVERY_S = 0.02
MEMORY_MB = 512
OBJECT_COPIES = 6
"""The copies of an object of JSON larger than `OBJECT_BYTES` that have room in memory."""

SPILLED_GB = 10
"""The most that a query writes to its directory."""

SAMPLE_ROWS, ALL_ROWS = 20_480, -1
"""The rows by which the types of columns are chosen, at first and after a row of another type."""

DELIMITERS, QUOTES = ",;|\t", (b'"', b"'")
PART = "query a part whose lines are alike, as fd:1#L1-20"

THREADS = 2
MAX_PROBLEM_CHARS = 800
SHOWN_COLUMNS = 100


class SqlQuery(msgspec.Struct, frozen=True):
    """A query over tables, by their names, whose result is written in this form."""

    text: str
    tables: Mapping[str, TableFile]
    form: Form = "csv"
    timeout_s: float = TIMEOUT_S


def run(query: SqlQuery, folder: Path, target: Any) -> int:
    """Write the result of a query to a binary file. Return its number of rows. `folder` is what the files of
    the tables lie in; what does not fit in memory is written there.

    Raises `InvalidArgument`, `TimedOut`.
    """
    largest = max(table.path.stat().st_size for table in query.tables.values())
    object_bytes, sample = OBJECT_BYTES, SAMPLE_ROWS
    while True:
        try:
            return _run(query, folder, target, object_bytes, sample)
        except InvalidArgument as error:
            said = str(error.__cause__)
            if "maximum_object_size" in said and object_bytes < largest:
                object_bytes = largest  # the buffers of the reader are as large as what is allowed
            elif "sample_size=-1" in said and sample != ALL_ROWS:
                sample = ALL_ROWS  # a later row is of another type
            else:
                raise
        target.seek(0)
        target.truncate()


def _run(query: SqlQuery, folder: Path, target: Any, object_bytes: int, sample: int) -> int:
    with closing(duckdb.connect(":memory:")) as connection:
        _confine(connection, query, folder, max(MEMORY_MB, OBJECT_COPIES * object_bytes >> 20))
        for name, table in query.tables.items():
            try:
                connection.execute(f'CREATE VIEW "{name}" AS {table.reader(object_bytes, sample)}')
                if table.format == "csv":
                    _check_rows(connection, name, table)
            except duckdb.Error as error:
                problem = f"{name} cannot be read as a table: {_said(error, query, folder)}"
                raise InvalidArgument("fd", joined(problem, PART)) from error
        with _interrupted_after(query, connection, folder):
            return write_result(connection, query.text, query.form, target)


def _check_rows(connection: duckdb.DuckDBPyConnection, name: str, table: TableFile) -> None:
    """Raise `InvalidArgument` if rows are missing: DuckDB takes first lines with fewer columns than the later
    ones for a title, and a table of rows of several lengths for one of a single column."""
    sniffed = f"SELECT Delimiter, SkipRows, HasHeader, Columns FROM sniff_csv('{table.path}')"
    [(delimiter, skipped, has_header, columns)] = connection.execute(sniffed).fetchall()
    with table.path.open("rb") as file:
        skipped_rows = sum(delimiter.encode() in line for line in islice(file, skipped))
        file.seek(0)
        is_quoted = file.read(1) in QUOTES
    if skipped_rows and not has_header:
        lines = format_count(skipped, "line")
        problem = f"the first {lines} of {name} have other columns than those after them"
        raise InvalidArgument("fd", joined(problem, PART))
    if len(columns) == 1 and not is_quoted and set(columns[0]["name"]) & set(DELIMITERS):
        raise InvalidArgument("fd", joined(f"the lines of {name} have different numbers of columns", PART))


def _confine(connection: duckdb.DuckDBPyConnection, query: SqlQuery, folder: Path, memory_mb: int) -> None:
    paths = ", ".join(f"'{table.path}'" for table in query.tables.values())
    for setting in (
        f"temp_directory = '{folder / 'spilled'}'",
        f"max_temp_directory_size = '{SPILLED_GB}GB'",
        f"memory_limit = '{memory_mb}MB'",
        f"threads = {THREADS}",
        "python_enable_replacements = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        f"allowed_paths = [{paths}]",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


@contextmanager
def _interrupted_after(
    query: SqlQuery, connection: duckdb.DuckDBPyConnection, folder: Path
) -> Iterator[None]:
    """Interrupt the query of the block when its time is over. Raises `TimedOut`, and `InvalidArgument` for
    the errors of DuckDB."""
    is_done, is_late = threading.Event(), threading.Event()

    def interrupt() -> None:
        if not is_done.wait(query.timeout_s):
            is_late.set()
            while not is_done.wait(INTERRUPT_EVERY_S):  # one before the query has begun is lost
                connection.interrupt()

    watch = threading.Thread(target=interrupt, name="fdstore-sql", daemon=True)
    watch.start()
    problem: duckdb.Error | None = None
    try:
        yield
    except duckdb.InterruptException as error:
        raise TimedOut("the end of the query", query.timeout_s) from error
    except duckdb.Error as error:
        problem = error
    finally:
        is_done.set()
        watch.join()
    if is_late.is_set():  # an interrupt may have cut the result
        raise TimedOut("the end of the query", query.timeout_s)
    if problem is not None:
        said = _said(problem, query, folder)
        if _OF_LINE.search(said):
            said = joined(said, PART)
        if isinstance(problem, (duckdb.BinderException, duckdb.CatalogException)):
            said = _with_tables_for_hint(said, list(query.tables))
            said = "; ".join([said, *(_described(connection, name) for name in query.tables)])
        raise InvalidArgument("query", said) from problem


_NO_TABLE = re.compile(
    r"(.*\bTable with name .* does not exist)!(?: Did you mean \"([^\"]*)\".*)?", re.DOTALL
)


def _with_tables_for_hint(said: str, tables: list[str]) -> str:
    """Return an error of DuckDB; that a table does not exist goes on with the tables that there are. What
    DuckDB guesses may be a table of its own.

    >>> _with_tables_for_hint('Table with name b does not exist! Did you mean "pg_am"?', ["a"])
    'Table with name b does not exist; the only table is a'
    """
    found = _NO_TABLE.fullmatch(said)
    if found is None:
        return said
    hint = f'! Did you mean "{found[2]}"?' if found[2] in tables else ""
    known = f"the only table is {tables[0]}" if len(tables) == 1 else f"the tables are {', '.join(tables)}"
    return joined(found[1] + hint, known)


def _described(connection: duckdb.DuckDBPyConnection, name: str) -> str:
    """Return the columns of a table with their types."""
    rows = connection.execute(f'DESCRIBE "{name}"').fetchall()
    columns = ", ".join(f"{column} {kind}" for column, kind, *_ in rows[:SHOWN_COLUMNS])
    more = f", and {len(rows) - SHOWN_COLUMNS} more" if len(rows) > SHOWN_COLUMNS else ""
    return f"{name} has the columns: {columns}{more}"


_ADVICE = re.compile(
    r"(?:\n\nLINE \d+: |\n\s*(?:Possible (?:solutions|fixes):|The search space used was:|file = )).*",
    re.DOTALL,
)
"""What DuckDB shows of its copy of the query and of its options, which a query cannot set here."""

_OF_LINE = re.compile(r"CSV Error on Line|Malformed JSON|\bin line \d")


def _said(error: duckdb.Error, query: SqlQuery, folder: Path) -> str:
    """Return what DuckDB says of these tables, by their names."""
    said = _ADVICE.sub("", str(error))
    # the path of table1 begins that of table10
    for name, table in sorted(query.tables.items(), key=lambda each: -len(str(each[1].path))):
        said = said.replace(str(table.path), name)
    return " ".join(said.replace(f"{folder}/", "").split())[:MAX_PROBLEM_CHARS]
