"""A pipeline as a graph: what it reads, its commands with their exit codes, what it writes."""

from __future__ import annotations

import shlex

from fdstore.agents.loop.conversation import decode_entry
from fdstore.errors import NotFound, StoreRefused
from fdstore.inspector.reading.conversation import ConversationPage
from fdstore.model.records import Descriptor, Record, TreeLimits
from fdstore.store.contents.naming import look_up
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import journal
from fdstore.tools.process_task import PipeTask
from fdstore.wire.operation import Operation

MAX_COMMAND_CHARS = 2_000


class Port(Record, frozen=True, kw_only=True):
    """A descriptor of the parent that a pipeline reads or writes; `descriptor` is None if it was
    dropped. `writer` is the pipeline that writes it, if another one does."""

    fd: str
    descriptor: Descriptor | None
    writer: str | None = None


class GraphStage(Record, frozen=True, kw_only=True):
    """A command; its exit code once all have ended; where its output is kept too."""

    number: int
    command: str
    exit_code: int | None = None
    tee: Port | None = None


class PipelineGraph(Record, frozen=True, kw_only=True):
    """The graph. `holder` is the process whose descriptors the ports are."""

    holder: str
    input: Port | None
    stages: list[GraphStage]
    output: Port | None
    stderr: Port | None


def pipeline_of(prefix: str, page: ConversationPage) -> Operation[PipelineGraph | None]:
    """Return the graph of a pipeline; None if its task cannot be read. Two round trips."""
    process = page.process
    holder = process.parent or process.id.rpartition(".")[0]
    records = yield from journal.read(prefix, process.id, 1)
    try:
        task = decode_entry(records[0]) if records else None
    except (ValueError, RecursionError):
        task = None
    if not isinstance(task, PipeTask) or not holder:
        return None
    output, stderr, *tees = [*process.outputs, "", ""][: max(2, len(process.outputs))]
    fds = [fd for fd in (page.input, output, stderr, *tees) if fd]
    known = yield from _known(ProcessHandle(process_keys(prefix, holder), TreeLimits()), fds)

    def port(fd: str) -> Port | None:
        found = known.get(fd)
        writer = found.producer if found and found.producer not in (process.id, holder) else None
        return Port(fd=fd, descriptor=found, writer=writer) if fd else None

    codes = page.codes.split(",") if page.codes else []
    tee_of = dict(zip(task.tee, tees, strict=False))
    stages = [
        GraphStage(
            number=number,
            command=shlex.join(argv)[:MAX_COMMAND_CHARS],
            exit_code=_code(codes[number - 1]) if number <= len(codes) else None,
            tee=port(tee_of.get(number, "")),
        )
        for number, argv in enumerate(task.commands, 1)
    ]
    return PipelineGraph(
        holder=holder, input=port(page.input), stages=stages, output=port(output), stderr=port(stderr)
    )


def _known(holder: ProcessHandle, fds: list[str]) -> Operation[dict[str, Descriptor]]:
    """Return those of these descriptors that exist; none if this user of Redis may not look them up,
    which takes a script."""
    if not fds:
        return {}
    try:
        found = yield from look_up(holder, fds)
    except (NotFound, StoreRefused):
        return {}
    return {each.fd: each for each in found if isinstance(each, Descriptor)}


def _code(text: str) -> int | None:
    return int(text) if text.removeprefix("-").isdecimal() and len(text) < 6 else None
