r"""SQL over a descriptor: `sql_fd(process, fd, query)`, and the same as a tool for a model.

DuckDB runs in this process, and can read that one descriptor and nothing else: no file, no network, no
extension, no other descriptor, and the query cannot change that. The content is the table `content`:

    CSV, TSV and the like    its columns            Parquet              its columns
    JSON, JSON lines         its keys               any other text       line (from 1), text

The result is CSV with a header. Values are as DuckDB prints them, but structs, lists and maps are JSON, with
null for NaN and infinities. NULL is an empty field, and an empty text is `""`.

    >>> d = proc.create("city,people\nParis,2103778\nLyon,520774\nNice,357737\n", media_type="text/csv")
    >>> found = sql_fd(proc, d.fd, "SELECT city FROM content WHERE people > 400000 ORDER BY city")
    >>> found.fd, found.media_type
    ('fd:2', 'text/csv')
    >>> proc.read(found.fd).text
    'city\nLyon\nParis\n'
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, BinaryIO, cast

from fdstore.client import Process
from fdstore.errors import InvalidArgument, MissingExtra, NotText, TimedOut
from fdstore.model.records import Descriptor
from fdstore.setup.optional_packages import how_to_install
from fdstore.text.media_types import BYTES_TYPE
from fdstore.text.previews import preview_of, sample_text

try:
    import duckdb
    from fsspec.spec import AbstractFileSystem
except ImportError as error:
    raise MissingExtra("duckdb", how_to_install("sql")) from error

TIMEOUT_S = 60
"""The time that a query may take, in seconds."""

INTERRUPT_EVERY_S = 0.02
MEMORY_MB = 512
OBJECT_BYTES = 16 << 20
"""The largest object of JSON that is read in `MEMORY_MB`. Of a larger one `OBJECT_COPIES` have room."""

OBJECT_COPIES = 6
THREADS = 2
ROWS_AT_A_TIME = 10_000
HEAD_BYTES = 65_536
"""The number of first bytes that tell what a text is."""

MEMORY_BYTES = 8_000_000
"""The bytes of a result kept in memory before it is stored; a longer one goes to a temporary file."""

PATH = "fdstore://content"

_LINES = """
    SELECT unnest(range(1, len(lines) + 1)) AS line, unnest(lines) AS text
    FROM (
        SELECT string_split(if(ends_with(content, chr(10)), content[:-2], content), chr(10)) AS lines
        FROM read_text('{path}') WHERE content <> ''
    )
"""  # the reader of CSV would drop empty lines
_READERS = {
    "csv": "FROM read_csv('{path}')",
    "json": "FROM read_json('{path}', maximum_object_size={object_bytes})",
    "parquet": "FROM read_parquet('{path}')",
    "lines": _LINES,
}


class _OneFile(AbstractFileSystem):
    """A filesystem that holds one descriptor."""

    protocol = "fdstore"
    cachable = False

    def __init__(self, process: Process, descriptor: Descriptor) -> None:
        super().__init__()
        self._process, self._descriptor = process, descriptor

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        if f"{self.protocol}://{self._strip_protocol(path)}" != PATH:
            raise FileNotFoundError(path)
        return {"name": path, "type": "file", "size": self._descriptor.bytes}

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        found = self.info(path)
        return [found if detail else path]

    def modified(self, path: str) -> datetime:
        return datetime.fromtimestamp(self._descriptor.created_at, UTC)

    def _open(self, path: str, mode: str = "rb", **options: Any) -> BinaryIO:
        self.info(path)
        return self._process.open_bytes(self._descriptor.fd)


def sql_fd(process: Process, fd: str, query: str, *, timeout_s: float = TIMEOUT_S) -> Descriptor:
    """Run one query over a descriptor, and store the result as CSV with a header, in bounded memory.

    Raises `InvalidArgument` (the query is wrong, or asks for more than the descriptor), `TimedOut`, `NotText`
    (bytes that are not Parquet), `NotFound`, `QuotaExceeded`.
    """
    with _result(process, fd, query, timeout_s) as found:
        return process.ingest(found, source="sql_fd", media_type="text/csv")


def sql_tool(process: Process, *, timeout_s: float = TIMEOUT_S) -> Callable[[str, str], str]:
    r"""Return `sql_fd` as a tool of `fdstore.Toolset(process, python=[...])`. A long result becomes a
    descriptor again, as that of every tool; one of more than 8 MB is stored from where it is, and named.

    >>> d = proc.create("a,b\n1,2\n3,4\n", media_type="text/csv")
    >>> tools = fdstore.Toolset(proc, python=[sql_tool(proc)])
    >>> tools.call("sql_fd", {"fd": d.fd, "query": "SELECT sum(b) AS total FROM content"}).content
    'total\n6\n'
    """

    def tool(
        fd: Annotated[str, "The descriptor, as fd:3."],
        query: Annotated[
            str,
            "One SELECT in DuckDB's SQL over the table `content`: the columns of CSV or Parquet, the keys of "
            "JSON or JSON lines, or `line` and `text` of any other text. DESCRIBE content lists them.",
        ],
    ) -> str:
        """Run SQL over a file descriptor, and return the result as CSV. It can read that descriptor alone."""
        with _result(process, fd, query, timeout_s) as found:
            text = found.read(MEMORY_BYTES + 1)
            if len(text) <= MEMORY_BYTES:
                return text.decode("utf-8")
            found.seek(0)
            stored = process.ingest(found, source="sql_fd", media_type="text/csv")
        return f"The result is stored as {stored.fd}: {stored.lines} lines, {stored.chars} characters of CSV."

    tool.__name__ = "sql_fd"
    return tool


@contextmanager
def _result(process: Process, fd: str, query: str, timeout_s: float) -> Iterator[BinaryIO]:
    """Run a query and yield its result as a file."""
    descriptor = process.stat(fd)
    with SpooledTemporaryFile(MEMORY_BYTES) as kept:
        try:
            _run(process, descriptor, query, timeout_s, kept)
        except InvalidArgument as error:
            # the buffers of the reader are as large as the largest object that is allowed
            if descriptor.bytes <= OBJECT_BYTES or "maximum_object_size" not in error.problem:
                raise
            kept.seek(0)
            kept.truncate()
            _run(process, descriptor, query, timeout_s, kept, descriptor.bytes)
        kept.seek(0)
        yield cast("BinaryIO", kept)


def _run(
    process: Process,
    descriptor: Descriptor,
    query: str,
    timeout_s: float,
    target: Any,
    object_bytes: int = OBJECT_BYTES,
) -> None:
    """Write the result of a query, whose JSON has objects of at most `object_bytes`."""
    with (
        closing(_confined(process, descriptor, object_bytes)) as connection,
        _interrupted_after(timeout_s, connection),
    ):
        _write_result(connection, query, target)


def _confined(process: Process, descriptor: Descriptor, object_bytes: int) -> duckdb.DuckDBPyConnection:
    """Return a connection with the table `content`, which can reach nothing else."""
    reader = _READERS[_format_of(process, descriptor)].format(path=PATH, object_bytes=object_bytes)
    memory = max(MEMORY_MB, OBJECT_COPIES * object_bytes >> 20)
    connection = duckdb.connect(":memory:")
    try:
        connection.register_filesystem(_OneFile(process, descriptor))
        for setting in (
            "temp_directory = ''",
            f"memory_limit = '{memory}MB'",
            f"threads = {THREADS}",
            "python_enable_replacements = false",
            "autoinstall_known_extensions = false",
            "autoload_known_extensions = false",
            f"allowed_paths = ['{PATH}']",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            connection.execute(f"SET {setting}")
        connection.execute(f"CREATE VIEW content AS {reader}")
    except duckdb.Error as error:
        connection.close()
        raise InvalidArgument("fd", f"{descriptor.fd} cannot be read as a table: {error}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _format_of(process: Process, descriptor: Descriptor) -> str:
    head = process.read_bytes(descriptor.fd, 0, HEAD_BYTES)
    if head[:4] == b"PAR1":
        return "parquet"
    if descriptor.kind != "text":
        raise NotText(descriptor.fd, descriptor.media_type or BYTES_TYPE, descriptor.bytes)
    if "json" in descriptor.media_type:
        return "json"
    if descriptor.media_type in ("text/csv", "text/tab-separated-values"):
        return "csv"
    text = head.decode("utf-8", "ignore")
    start = text.lstrip()[:1]
    if len(head) < descriptor.bytes:
        text = text[: text.rfind("\n") + 1]  # whole lines
    kind = preview_of(sample_text(text), HEAD_BYTES)
    if kind is not None and kind.kind == "table":
        return "csv"
    return "json" if start in ("{", "[") else "lines"


@contextmanager
def _interrupted_after(timeout_s: float, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Interrupt the query of the block when its time is over. Raises `TimedOut`, and `InvalidArgument` for
    the errors of DuckDB."""
    is_done, is_late = threading.Event(), threading.Event()

    def interrupt() -> None:
        if not is_done.wait(timeout_s):
            is_late.set()
            while not is_done.wait(INTERRUPT_EVERY_S):  # one before the query has begun is lost
                connection.interrupt()

    watch = threading.Thread(target=interrupt, name="fdstore-sql", daemon=True)
    watch.start()
    try:
        yield
    except duckdb.InterruptException as error:
        raise TimedOut("the end of the query", timeout_s) from error
    except duckdb.Error as error:
        raise InvalidArgument("query", str(error)) from error
    finally:
        is_done.set()
        watch.join()
    if is_late.is_set():  # an interrupt may have cut the result
        raise TimedOut("the end of the query", timeout_s)


def _write_result(connection: duckdb.DuckDBPyConnection, query: str, target: Any) -> None:
    names, rows = _printed(connection, query)
    text = io.TextIOWrapper(target, "utf-8", newline="", write_through=True)
    try:
        text.write(_line(names))
        for row in rows:
            text.write(_line(row))
    finally:
        text.detach()


def _printed(
    connection: duckdb.DuckDBPyConnection, query: str
) -> tuple[Sequence[str], Iterator[Sequence[str | None]]]:
    """Run a query. Return the names of its columns, and its rows as DuckDB prints them, since Python has no
    values for some of its own: nanoseconds, months, infinite dates, numbers of 4 bytes."""
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
    return relation.columns, map(partial(_with_nulls, _nested(kinds)), rows)


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
