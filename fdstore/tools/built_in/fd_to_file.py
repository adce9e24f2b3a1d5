"""`fd_to_file`: write a text exactly to a file below the export root, without passing it to the model.

An attempt may die after its file is in place and before the call's result is stored. The next attempt must
not append again, fail because the file created by this call "exists", or overwrite what others wrote since.
And an attempt that only stalled must not overwrite a newer file when it resumes. So an attempt first stores a
plan that identifies its file, which fails if a later attempt has stored one; the next attempt checks whether
the planned file is in place, and otherwise removes its temporary file first.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from fdstore.elements.render import fd_file_result
from fdstore.elements.stored_message import StoredResult
from fdstore.errors import CallInterrupted, quoted
from fdstore.files.target import Target, TargetIdentity
from fdstore.model.msgspec_types import prepare
from fdstore.model.records import Export
from fdstore.results.context import Context
from fdstore.results.tool_outcome import ToolOutcome
from fdstore.store.contents import exporting
from fdstore.store.processes import tool_calls
from fdstore.store.record_format import decode_record
from fdstore.store.trees.export_quota import Allowance
from fdstore.text.selection import parse_request
from fdstore.tools.arguments import Arguments, Fd, WriteMode
from fdstore.tools.needs import EXPORT_ROOT
from fdstore.tools.tool import Tool
from fdstore.wire.operation import Disk, Operation


class FDToFile(Arguments, frozen=True, kw_only=True):
    fd: Fd
    file_path: Annotated[str, msgspec.Meta(description="Relative, without '..' and hidden names (.x).")]
    mode: WriteMode = "write"
    create: Annotated[bool, msgspec.Meta(description="false: the file must be there already.")] = True
    exist_ok: Annotated[bool, msgspec.Meta(description="false: the file must not be there yet.")] = True


class Plan(msgspec.Struct, frozen=True):
    """The file about to be put in place, and the result to return for it."""

    mark: TargetIdentity
    done: Export


prepare(Plan)


def run(context: Context, arguments: FDToFile, call_id: str | None) -> Operation[ToolOutcome]:
    chosen = parse_request(arguments.fd)
    target = Target(
        arguments.file_path,
        mode=arguments.mode,
        create=arguments.create,
        exist_ok=arguments.exist_ok,
        root=context.export_root,
    )
    handle, mode = context.handle, arguments.mode
    tell = context.progress
    progress = None if tell is None else lambda done: tell(done, None)
    allowance = Allowance(handle, call_id)
    if call_id is None:
        # a call without an id is never repeated
        done = yield from exporting.export(
            handle, chosen.fd, chosen.part, target, mode, progress, allowance=allowance
        )
        return fd_file_result(done, arguments.create, arguments.exist_ok)

    interrupted = CallInterrupted(f"this {mode} to {quoted(arguments.file_path)}")
    before = yield from tool_calls.read_plan(handle, call_id)
    if before is not None:
        earlier = decode_record(before, Plan, f"the plan of call {quoted(call_id)} of process {handle.id}")
        is_in_place = yield Disk(lambda: target.was_committed(earlier.mark))
        if is_in_place is None:
            raise interrupted
        if is_in_place:
            return fd_file_result(earlier.done, arguments.create, arguments.exist_ok)

    def plan(mark: TargetIdentity, done: Export) -> Operation[None]:
        encoded = msgspec.json.encode(Plan(mark, done)).decode("utf-8")
        if not (yield from tool_calls.plan(handle, call_id, before, encoded)):
            raise interrupted

    done = yield from exporting.export(
        handle, chosen.fd, chosen.part, target, mode, progress, plan, allowance
    )
    return fd_file_result(done, arguments.create, arguments.exist_ok)


def describe(context: Context) -> str:
    return (
        "Write a stored text, or a part of it, exactly to a file, without reading it. Directories must "
        "be there already."
    )


def explain(context: Context) -> str:
    return '- save it exactly as it is: fd_to_file(fd="fd:1", file_path="out.txt")'


def offer(stored: StoredResult) -> str:
    return f'save it with fd_to_file(fd="{stored.fd}", file_path="...")'


TOOL = Tool(
    name="fd_to_file",
    title="Save a stored text",
    position=60,
    works_on="descriptors",
    effect="destroys",
    permission="export",
    needs=EXPORT_ROOT,
    arguments=FDToFile,
    describe=describe,
    explain=explain,
    offer=offer,
    run=run,
    failing=(
        {"fd": "fd:9", "file_path": "a.txt"},
        {"fd": "fd:1", "file_path": "../a.txt"},
        {"fd": "fd:1", "file_path": "old.txt", "exist_ok": False},
        {"fd": "fd:1", "file_path": "new.txt", "create": False},
        {"fd": "fd:1#P99", "file_path": "new.txt"},
    ),
    shown={
        "fd_file_result": ({"fd": "fd:1", "file_path": "log.txt"},),
    },
)
