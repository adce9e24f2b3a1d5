"""Run SQL over contents of a process: each is copied to a file first, whole or the part that is named.

The copies and the result lie in a directory of their own until the result was taken.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO, TypeVar, cast

from fdstore.errors import InvalidArgument, quoted
from fdstore.sql.duckdb_query import TIMEOUT_S, SqlQuery, run
from fdstore.sql.printing import Form
from fdstore.sql.table_file import TableFile
from fdstore.store.contents import reading
from fdstore.store.contents.exporting import write_part
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.selection import JsonValue, Part, selector
from fdstore.text.surrogates import escape_surrogates
from fdstore.wire.operation import Disk, Operation

T = TypeVar("T")

TABLE = "content"
"""The name of the table of a query over one content."""

MAX_TABLES = 20
SOURCE = "sql_fd"
"""The source of a stored result."""

MEDIA_TYPE = "text/csv"
MEMORY_BYTES = 8_000_000
"""The bytes of a result that are kept in memory; a longer one goes to the directory."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")

Take = Callable[[BinaryIO, int], Operation[T]]
"""Takes the file with a result, from its beginning, and the number of rows."""


def tables_of(fd: object, fds: Mapping[str, object] | None) -> dict[str, object]:
    """Return the contents of a query by the names of their tables: `fd` as `content`, or `fds`. Raises
    `InvalidArgument`, also for both or neither."""
    if (fd is None) == (not fds):
        raise InvalidArgument("fds", 'give fd, whose table is content, or fds, as {"a": "fd:1", "b": "fd:2"}')
    if fd is not None:
        return {TABLE: fd}
    assert fds
    if len(fds) > MAX_TABLES:
        raise InvalidArgument("fds", f"{len(fds)} tables are more than {MAX_TABLES}")
    for name in fds:
        if not _NAME.fullmatch(name):
            raise InvalidArgument("fds", f"{quoted(name)} is no name of a table: use letters, digits and _")
    if len({name.lower() for name in fds}) < len(fds):
        raise InvalidArgument("fds", "the names of tables must differ by more than case")
    return dict(fds)


def run_query(
    handle: ProcessHandle,
    query: str,
    tables: Mapping[str, object],
    take: Take[T],
    *,
    form: Form = "csv",
    timeout_s: float = TIMEOUT_S,
) -> Operation[T]:
    """Run a query over contents, by the names of their tables. Return what `take` makes of the result.

    Raises `InvalidArgument` (the query is wrong, or asks for more than these contents), `TimedOut`, `NotText`
    (bytes that are not Parquet), `NotFound`.
    """
    if escape_surrogates(query) != query:
        raise InvalidArgument("query", f"{quoted(query)} has a lone surrogate, which UTF-8 cannot encode")
    chosen = {name: selector(fd) for name, fd in tables.items()}
    folder = Path((yield Disk(partial(tempfile.mkdtemp, prefix="fdstore-sql-"), must_end=True)))
    with ExitStack() as at_end:
        at_end.callback(rmtree, folder, ignore_errors=True)
        files: dict[str, TableFile] = {}
        for number, (name, part) in enumerate(chosen.items()):
            whole = ""
            if isinstance(part.part, Part):
                whole = (yield from reading.read_page(handle, part.fd, 1)).text
            file = files[name] = TableFile(
                folder / f"table{number}", is_json=isinstance(part.part, JsonValue), whole=whole
            )
            at_end.callback(file.file.close)
            yield from write_part(handle, part.fd, part.part, file.write, begin=file.begin)
            yield Disk(file.close, must_end=True)
        kept = at_end.enter_context(tempfile.SpooledTemporaryFile(MEMORY_BYTES, dir=str(folder)))
        target = cast("BinaryIO", kept)
        asked = SqlQuery(query, files, form, timeout_s)
        rows = yield Disk(partial(run, asked, folder, target), must_end=True)
        target.seek(0)
        return (yield from take(target, rows))
