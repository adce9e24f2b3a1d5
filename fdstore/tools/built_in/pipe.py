"""`pipe`: run programs over stored texts in the background on a worker, without passing text to the model."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from fdstore.elements.render import process_result
from fdstore.elements.stored_message import StoredResult
from fdstore.results.context import Context
from fdstore.results.tool_outcome import ToolOutcome
from fdstore.store.processes import pipelines, process_records
from fdstore.store.views import worker_check
from fdstore.text.commands import check_tees, parse
from fdstore.text.selection import fd_id
from fdstore.tools.arguments import Arguments
from fdstore.tools.needs import COMMANDS
from fdstore.tools.process_task import PipeTask, encode_task
from fdstore.tools.tool import Tool
from fdstore.wire.operation import Disk, Operation

MAX_SHOWN = 150


class Pipe(Arguments, frozen=True, kw_only=True):
    commands: Annotated[
        list[str],
        msgspec.Meta(
            description="A program with its arguments for each stage, there is no shell: "
            '["grep -n ERROR", "sort"].',
        ),
    ]
    in_fd: Annotated[
        str | int | None,
        msgspec.Meta(
            description='What the first stage reads: a descriptor, also one still being written, or "new" '
            "for one that you write with write_fd. Nothing by default.",
            extra_json_schema={"type": "string"},
        ),
    ] = None
    tee: Annotated[
        list[int], msgspec.Meta(description="Stages, from 1, whose output is kept as a descriptor too.")
    ] = msgspec.field(default_factory=list)


def run(context: Context, arguments: Pipe, call_id: str | None) -> Operation[ToolOutcome]:
    pipeline = yield from start_pipeline(context, arguments, call_id)
    record = yield from process_records.record(context.prefix, pipeline.process)
    return process_result(record, in_fd=pipeline.in_fd if arguments.in_fd == "new" else None)


def start_pipeline(context: Context, arguments: Pipe, call_id: str | None) -> Operation[pipelines.PipeFds]:
    """Create the pipeline and wake a worker for it. Return its descriptors. Raises `NotAllowed` if workers
    live and none may run it."""
    commands = parse(arguments.commands, context.commands)
    tees = check_tees(arguments.tee, len(commands))
    yield from worker_check.check_commands(context.prefix, [command.argv[0] for command in commands])
    task = PipeTask(
        commands=[list(command.argv) for command in commands],
        page_size=context.config.default_page_size,
        tee=list(tees),
        **msgspec.structs.asdict(context.pipeline_limits),
    )
    pipeline = yield from pipelines.start(
        context.handle,
        encode_task(task),
        title=" | ".join(arguments.commands)[:MAX_SHOWN],
        in_fd=_input(arguments.in_fd),
        tees=tees,
        page_size=context.config.default_page_size,
        call_id=call_id,
    )
    yield Disk(lambda: context.wake(pipeline.process))
    return pipeline


def _input(in_fd: str | int | None) -> str | Literal["new"] | None:
    return in_fd if in_fd is None or in_fd == "new" else fd_id(in_fd)


def describe(context: Context) -> str:
    programs = ", ".join(context.commands)
    return (
        "Run programs over a stored text in the background: the output of each stage is the input of the "
        "next. Returns immediately with the descriptors it writes; read them while it runs, or wait for it. "
        f"Programs: {programs}."
    )


def explain(context: Context) -> str:
    on = context.enabled
    programs = ", ".join(context.commands)
    commands = ", ".join(f'"{each}"' for each in dict.fromkeys((context.commands[0], context.commands[-1])))
    in_fd = ', in_fd="fd:1"' if context.fds_on else ""
    parts = [
        "# Programs over stored texts\n"
        f"pipe runs programs ({programs}) in the background: pipe(commands=[{commands}]{in_fd}). There is no "
        "shell: no variables, redirections or globs. You get the process, the fd of its output, and the fd "
        "of its error output" + ("; read them now or later." if "read_fd" in on else ".")
    ]
    if context.fds_on:
        parts.append("The output of one pipeline may be the in_fd of another, also while it is written.")
    if "write_fd" in on:
        parts.append('With in_fd="new" you write its input yourself with write_fd, and end it with eof=true.')
    return " ".join(parts)


def offer(stored: StoredResult) -> str:
    if stored.shows != "nothing":
        return ""
    return f'pass it to a command with pipe(commands=["..."], in_fd="{stored.fd}")'


TOOL = Tool(
    name="pipe",
    title="Run programs over a stored text",
    position=130,
    works_on="processes",
    effect="adds",
    permission="pipe",
    needs=COMMANDS,
    starts="commands",
    arguments=Pipe,
    describe=describe,
    explain=explain,
    offer=offer,
    section="pipelines",
    run=run,
    failing=(
        {"commands": ["rm -r ."]},
        {"commands": []},
        {"commands": ["sort"], "in_fd": "fd:9"},
    ),
    failing_when_full=({"commands": ["sort"]},),
)
