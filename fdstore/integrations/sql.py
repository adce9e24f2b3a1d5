r"""SQL over descriptors: `sql_fd(process, fd, query)`. For a model the same is the tool `sql_fd`.

DuckDB runs in this process, and can read what is named and nothing else: no file, no network, no extension,
no other descriptor, and the query cannot change that. A content is the table `content`:

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
    >>> both = sql_fd(proc, {"a": d.fd, "b": found.fd}, "SELECT people FROM a JOIN b USING (city) ORDER BY 1")
    >>> proc.read(both.fd).text
    'people\n520774\n2103778\n'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO

from fdstore.client import Process
from fdstore.model.records import Descriptor
from fdstore.sql.duckdb_query import TIMEOUT_S
from fdstore.sql.queries import MEDIA_TYPE, SOURCE, run_query, tables_of
from fdstore.store.contents import contents
from fdstore.wire.operation import Operation


def sql_fd(
    process: Process, fd: str | int | Mapping[str, str | int], query: str, *, timeout_s: float = TIMEOUT_S
) -> Descriptor:
    """Run one query over a descriptor, or a part that a selector names, and store the result as CSV with a
    header, in bounded memory. Several are given by the names of their tables: `{"a": "fd:1", "b": "fd:2"}`.

    Raises `InvalidArgument` (the query is wrong, or asks for more than these descriptors), `TimedOut`,
    `NotText` (bytes that are not Parquet), `NotFound`, `QuotaExceeded`.
    """
    tables = tables_of(None, fd) if isinstance(fd, Mapping) else tables_of(fd, None)

    def store(file: BinaryIO, _: int) -> Operation[Descriptor]:
        return (yield from contents.ingest(process.handle, file, SOURCE, media_type=MEDIA_TYPE))

    return process.store.run(run_query(process.handle, query, tables, store, timeout_s=timeout_s))
