r"""SQL over a descriptor: `sql_fd(process, fd, query)`, and the same as a tool for a model.

DuckDB runs in this process, and can read that one descriptor and nothing else: no file, no network, no
extension, no other descriptor, and the query cannot change that. The content is the table `content`:

    CSV, TSV and the like    its columns            Parquet              its columns
    JSON, JSON lines         its keys               any other text       line (from 1), text

The result is CSV with a header: structs, lists, maps and booleans as JSON, blobs as hexadecimal digits, times
in ISO 8601. NULL is an empty field, and an empty text is `""`.

    >>> d = proc.create("city,people\nParis,2103778\nLyon,520774\nNice,357737\n", media_type="text/csv")
    >>> found = sql_fd(proc, d.fd, "SELECT city FROM content WHERE people > 400000 ORDER BY city")
    >>> found.fd, found.media_type
    ('fd:2', 'text/csv')
    >>> proc.read(found.fd).text
    'city\nLyon\nParis\n'
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, time
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, BinaryIO, cast

from fdstore.client import Process
from fdstore.errors import InvalidArgument, MissingExtra, NotText, TimedOut
from fdstore.optional_packages import how_to_install
from fdstore.records import Descriptor
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
MEMORY = "512MB"
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
    "json": "FROM read_json('{path}')",
    "parquet": "FROM read_parquet('{path}')",
    "lines": _LINES,
}


class _OneFile(AbstractFileSystem):  # type: ignore[misc]
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
        with (
            closing(_confined(process, descriptor)) as connection,
            _interrupted_after(timeout_s, connection),
        ):
            _write_result(connection, query, kept)
        kept.seek(0)
        yield cast("BinaryIO", kept)


def _confined(process: Process, descriptor: Descriptor) -> duckdb.DuckDBPyConnection:
    """Return a connection with the table `content`, which can reach nothing else."""
    reader = _READERS[_format_of(process, descriptor)].format(path=PATH)
    connection = duckdb.connect(":memory:")
    try:
        connection.register_filesystem(_OneFile(process, descriptor))
        for setting in (
            "temp_directory = ''",
            f"memory_limit = '{MEMORY}'",
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
    if len(head) < descriptor.bytes:
        text = text[: text.rfind("\n") + 1]  # whole lines
    kind = preview_of(sample_text(text), HEAD_BYTES)
    if kind is not None and kind.kind == "table":
        return "csv"
    return "json" if text.lstrip()[:1] in ("{", "[") else "lines"


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
    found = connection.execute(query)
    if found is None or found.description is None:
        raise InvalidArgument("query", "it has no result; write a SELECT")
    text = io.TextIOWrapper(target, "utf-8", newline="", write_through=True)
    try:
        text.write(_line([column[0] for column in found.description]))
        while rows := found.fetchmany(ROWS_AT_A_TIME):
            text.writelines(map(_line, rows))
    finally:
        text.detach()


def _line(values: Sequence[Any]) -> str:
    r"""Return a row as a line of CSV.

    >>> _line([1, None, "", True, b"\x0f", "one, two"])
    '1,,"",true,0f,"one, two"\n'
    """
    return ",".join(map(_field, values)) + "\n"


def _field(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else _text_of(value)
    is_plain = text and not any(mark in text for mark in ',"\r\n')
    return text if is_plain else f'"{text.replace(chr(34), chr(34) * 2)}"'


def _text_of(value: Any) -> str:
    match value:
        case bytes():
            return value.hex()
        case bool() | dict() | list() | tuple():
            return json.dumps(value, ensure_ascii=False, default=_text_of)
        case date() | time():  # a datetime is a date
            return value.isoformat()
        case _:
            return str(value)
