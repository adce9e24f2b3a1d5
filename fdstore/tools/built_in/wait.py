"""`wait`: wait for the end of another process."""

from __future__ import annotations

from typing import Annotated

import msgspec

from fdstore.results.context import Context
from fdstore.results.tool_outcome import Started, ToolOutcome
from fdstore.store.processes import process_records
from fdstore.tools.arguments import Arguments
from fdstore.tools.process_target import Target, process_of
from fdstore.tools.tool import Tool
from fdstore.wire.operation import Operation

MAX_WAIT_S = 86_400


class Wait(Arguments, frozen=True, kw_only=True):
    target: Target
    seconds: Annotated[float, msgspec.Meta(ge=0, le=MAX_WAIT_S)] = 60


def run(context: Context, arguments: Wait, call_id: str | None) -> Operation[ToolOutcome]:
    process = yield from process_of(context, arguments.target)
    # Redis's clock, since a later attempt may run on another machine
    _, now_s = yield from process_records.record_at(context.prefix, process)
    return Started((process,), now_s + arguments.seconds, arguments.seconds)


def describe(context: Context) -> str:
    return "Wait until a process ends, or until the seconds have passed. Returns its state."


def explain(context: Context) -> str:
    return (
        "wait returns when a process has ended, or when the time is over, with its state; name the process "
        "or the fd that it writes."
    )


TOOL = Tool(
    name="wait",
    title="Wait for a process",
    position=140,
    works_on="processes",
    effect="reads",
    permission="pipe",
    arguments=Wait,
    describe=describe,
    explain=explain,
    section="pipelines",
    run=run,
    failing=(
        {"target": "triage.9"},
        {"target": "triage.1", "seconds": -1},
    ),
)
