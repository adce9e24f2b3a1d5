"""`kill`: cancel another process and all that it started."""

from __future__ import annotations

from functools import partial

from fdstore.elements.render import process_result
from fdstore.results.context import Context
from fdstore.results.tool_outcome import ToolOutcome
from fdstore.store.processes import process_records, processes
from fdstore.tools.arguments import Arguments
from fdstore.tools.process_target import Target, process_of
from fdstore.tools.tool import Tool
from fdstore.wire.operation import Disk, Operation


class Kill(Arguments, frozen=True, kw_only=True):
    target: Target


def run(context: Context, arguments: Kill, call_id: str | None) -> Operation[ToolOutcome]:
    process = yield from process_of(context, arguments.target)
    cancelled = yield from processes.cancel(context.prefix, process)
    for ancestor in cancelled.woken:
        yield Disk(partial(context.wake, ancestor))
    record = yield from process_records.record(context.prefix, process)
    return process_result(record)


def describe(context: Context) -> str:
    return "Cancel a process with all its descendants. What it has written stays readable."


def explain(context: Context) -> str:
    return "kill ends a process and all that it started; what it has written stays."


TOOL = Tool(
    name="kill",
    title="Cancel a process",
    position=150,
    works_on="processes",
    effect="destroys",
    repeatable=True,
    permission="pipe",
    arguments=Kill,
    describe=describe,
    explain=explain,
    section="pipelines",
    run=run,
    failing=(
        {"target": "triage.9"},
        {"target": "other.1"},
    ),
)
