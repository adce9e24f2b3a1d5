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
from pathlib import Path
from typing import Any

import msgspec

from fdstore.errors import InvalidArgument, MissingExtra, TimedOut, joined
from fdstore.setup.optional_packages import how_to_install
from fdstore.sql.table_file import OBJECT_BYTES, TableFile

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
    try:
        return _run(query, folder, target, OBJECT_BYTES)
    except InvalidArgument as error:
        # the buffers of the reader are as large as the largest object that is allowed
        if largest <= OBJECT_BYTES or "maximum_object_size" not in error.problem:
            raise
    target.seek(0)
    target.truncate()
    return _run(query, folder, target, largest)


def _run(query: SqlQuery, folder: Path, target: Any, object_bytes: int) -> int:
    with closing(duckdb.connect(":memory:")) as connection:
        _confine(connection, query, folder, max(MEMORY_MB, OBJECT_COPIES * object_bytes >> 20))
        for name, table in query.tables.items():
            try:
                connection.execute(f'CREATE VIEW "{name}" AS {table.reader(object_bytes)}')
            except duckdb.Error as error:
                problem = f"{name} cannot be read as a table: {_without_paths(error, folder)}"
                raise InvalidArgument("fd", problem) from error
        with _interrupted_after(query, connection, folder):
            return write_result(connection, query.text, query.form, target)


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
        said = _without_paths(problem, folder)
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


def _without_paths(error: duckdb.Error, folder: Path) -> str:
    said = str(error).replace(f"{folder}/", "").partition("\n\nLINE ")[0]  # a copy of the query
    return " ".join(said.split())[:MAX_PROBLEM_CHARS]
