"""`wait` and `kill`: wait for the end of another process, or cancel it."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec

from fdstore.elements.render import process_result
from fdstore.errors import InvalidArgument, NotFound
from fdstore.results.context import Context
from fdstore.results.tool_outcome import Started, ToolOutcome
from fdstore.store.contents.resolving import resolve
from fdstore.store.keys import check_process
from fdstore.store.processes import process_records, processes
from fdstore.text.selection import fd_id
from fdstore.tools.arguments import Arguments
from fdstore.tools.tool import Tool
from fdstore.wire.operation import Disk, Operation

MAX_WAIT_S = 86_400

Target = Annotated[
    str | int,
    msgspec.Meta(
        description="A process id such as triage.1, or a descriptor that the process writes.",
        extra_json_schema={"type": "string"},
    ),
]


class Wait(Arguments, frozen=True, kw_only=True):
    target: Target
    seconds: Annotated[float, msgspec.Meta(ge=0, le=MAX_WAIT_S)] = 60


class Kill(Arguments, frozen=True, kw_only=True):
    target: Target


def process_of(context: Context, target: str | int) -> Operation[str]:
    """Return the id of the target process, a descendant of this one. Raises `NotFound`, `InvalidArgument`."""
    try:
        fd = fd_id(target)
    except InvalidArgument:
        process = check_process(target)
    else:
        view, _ = yield from resolve(context.handle, fd)
        process = view.descriptor.producer
    if not process.startswith(f"{context.handle.id}."):
        tree = yield from process_records.tree_record(context.prefix, context.handle.id.partition(".")[0])
        below = tuple(m.id for m in tree.members if m.id.startswith(f"{context.handle.id}."))
        raise NotFound(f"a process {process} below this one", below)
    return process


def run_wait(context: Context, arguments: Wait, call_id: str | None) -> Operation[ToolOutcome]:
    process = yield from process_of(context, arguments.target)
    # Redis's clock, since a later attempt may run on another machine
    _, now_s = yield from process_records.record_at(context.prefix, process)
    return Started((process,), now_s + arguments.seconds, arguments.seconds)


def run_kill(context: Context, arguments: Kill, call_id: str | None) -> Operation[ToolOutcome]:
    process = yield from process_of(context, arguments.target)
    cancelled = yield from processes.cancel(context.prefix, process)
    for ancestor in cancelled.woken:
        yield Disk(partial(context.wake, ancestor))
    record = yield from process_records.record(context.prefix, process)
    return process_result(record)


WAIT = Tool(
    name="wait",
    arguments=Wait,
    describe=lambda _: "Wait until a process ends, or until the seconds have passed. Returns its state.",
    run=run_wait,
)
KILL = Tool(
    name="kill",
    arguments=Kill,
    describe=lambda _: "Cancel a process with all its descendants. What it has written stays readable.",
    run=run_kill,
)
