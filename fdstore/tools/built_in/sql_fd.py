"""`sql_fd`: run SQL over stored tables, with DuckDB. A long result is stored, as CSV."""

from __future__ import annotations

from typing import Annotated, Any, BinaryIO

import msgspec

from fdstore.results.context import Context
from fdstore.results.fd_results import render_fd
from fdstore.results.tool_outcome import ToolOutcome
from fdstore.results.wrapping import wrap_text
from fdstore.store.contents import contents
from fdstore.tools.arguments import NAMES_FD, Arguments
from fdstore.tools.needs import SQL
from fdstore.tools.tool import Tool
from fdstore.wire.operation import Operation


class SqlFD(Arguments, frozen=True, kw_only=True):
    query: Annotated[str, msgspec.Meta(description="One SELECT.")]
    fd: Annotated[
        Any,
        msgspec.Meta(description="The table content.", extra_json_schema={"type": "string"}, extra=NAMES_FD),
    ] = None
    fds: Annotated[
        dict[str, Any],
        msgspec.Meta(
            description='Instead, several: {"a": "fd:1", "b": "fd:2"}.',
            extra_json_schema={"additionalProperties": {"type": "string"}},
        ),
    ] = msgspec.field(default_factory=dict)


def run(context: Context, arguments: SqlFD, call_id: str | None) -> Operation[ToolOutcome]:
    from fdstore.sql.queries import MEDIA_TYPE, MEMORY_BYTES, SOURCE, run_query, tables_of

    def take(file: BinaryIO, _: int) -> Operation[ToolOutcome]:
        text = file.read(MEMORY_BYTES + 1)
        if len(text) <= MEMORY_BYTES:
            return (
                yield from wrap_text(
                    context, text.decode("utf-8"), SOURCE, call_id, is_same=False, media_type=MEDIA_TYPE
                )
            )
        file.seek(0)
        slot, page_size = call_id and f"{call_id}/wrapped", context.config.default_page_size
        stored = yield from contents.ingest(
            context.handle, file, SOURCE, page_size, media_type=MEDIA_TYPE, call_id=slot
        )
        return (yield from render_fd(context, stored.fd))

    tables = tables_of(arguments.fd, arguments.fds)
    return (yield from run_query(context.handle, arguments.query, tables, take))


def describe(context: Context) -> str:
    return (
        "Run DuckDB's SQL over stored CSV, JSON, JSON lines or Parquet; other text has the columns line and "
        "text. The result is CSV."
    )


def explain(context: Context) -> str:
    return '- add up, group or join: sql_fd(fd="fd:1", query="SELECT city, sum(n) FROM content GROUP BY 1")'


TOOL = Tool(
    name="sql_fd",
    title="Query stored tables",
    position=27,
    works_on="descriptors",
    effect="reads",
    permission="write",
    needs=SQL,
    held_back=True,
    arguments=SqlFD,
    describe=describe,
    explain=explain,
    run=run,
    failing=(
        {"query": "SELECT town FROM content", "fd": "fd:1"},
        {"query": "SELECT 1", "fd": "fd:1", "fds": {"a": "fd:1"}},
        {"query": "FROM content", "fd": "fd:9"},
    ),
)
