"""`spawn`: start another agent on a worker. Texts are passed to it by reference."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from io import BufferedReader
from typing import Annotated, NamedTuple

import msgspec

from fdstore.elements.render import process_result
from fdstore.errors import InvalidArgument, UnknownProgram
from fdstore.files.source import open_below
from fdstore.results.context import Context
from fdstore.results.tool_outcome import Started, ToolOutcome
from fdstore.store.contents import contents
from fdstore.store.processes import process_records, processes
from fdstore.text.media_types import is_binary
from fdstore.text.selection import selector
from fdstore.tools.arguments import Arguments, Fd, check_message
from fdstore.tools.needs import LINKED_PROGRAMS
from fdstore.tools.process_task import SpawnTask, encode_task, title_of
from fdstore.tools.tool import Tool
from fdstore.wire.operation import Disk, Operation

MAX_PRELOADS = 100


class File(NamedTuple):
    """A file to preload, and the function that opens it within its permitted root."""

    path: str
    open: Callable[[], int]


class Spawn(Arguments, frozen=True, kw_only=True):
    program_name: str
    query: Annotated[str, msgspec.Meta(description="Its task; it knows only this and its preloads.")]
    additional_preload_files: Annotated[
        list[str], msgspec.Meta(description="Paths of files that it reads as stored texts.")
    ] = msgspec.field(default_factory=list)
    additional_preload_fds: Annotated[
        list[Fd],
        msgspec.Meta(description="Stored texts, or parts of them, that it reads under the same ids."),
    ] = msgspec.field(default_factory=list)
    background: Annotated[
        bool,
        msgspec.Meta(
            description="Do not wait for its answer: return immediately the fd of its text, which grows "
            "while it works."
        ),
    ] = False

    @staticmethod
    def hidden(context: Context | None) -> frozenset[str]:
        if context is None:
            return frozenset()
        usable = {
            "additional_preload_files": context.preload_root is not None,
            "additional_preload_fds": context.fds_on,
            "background": _can_be_followed(context),
        }
        return frozenset(name for name, on in usable.items() if not on)


def run(context: Context, arguments: Spawn, call_id: str | None) -> Operation[ToolOutcome]:
    if call_id is not None and not context.is_new_call:
        # a repeated call, such as after waiting for the child, has nothing left to prepare
        before = yield from processes.child_of_call(context.handle, call_id)
        if before is not None:
            return (yield from _result(context, before, arguments))
    child = yield from start_child(context, arguments, call_id)
    return (yield from _result(context, child, arguments))


def start_child(context: Context, arguments: Spawn, call_id: str | None) -> Operation[str]:
    """Create the child and wake a worker for it. Return its id; for a repeated call that of its first run."""
    linked = context.linked.get(arguments.program_name)
    if linked is None:
        raise UnknownProgram(arguments.program_name, tuple(context.linked))
    query = check_message("query", arguments.query)
    if arguments.background and not _can_be_followed(context):
        raise InvalidArgument("background", "there is no tool to read or wait for it with; leave it out")
    if arguments.additional_preload_fds and not context.fds_on:
        raise InvalidArgument("additional_preload_fds", "there are no descriptors; put the text in query")
    if arguments.additional_preload_files and context.preload_root is None:
        raise InvalidArgument(
            "additional_preload_files",
            "no directory is named to read files from ([preload] root); leave it out",
        )
    if len(arguments.additional_preload_fds) + len(arguments.additional_preload_files) > MAX_PRELOADS:
        raise InvalidArgument("additional_preload_fds", f"at most {MAX_PRELOADS} preloads are taken")
    # files named by the child's program, then those named by the model, below the preload root
    files = [File(path, partial(context.permissions.open_preload, path)) for path in linked.preload]
    files += [
        File(path, partial(open_below, path, context.preload_root))
        for path in arguments.additional_preload_files
    ]
    yield from _check(context, arguments.additional_preload_fds, files)
    preload = yield from _shared_ids(context, arguments.additional_preload_fds, call_id)
    preload += yield from _ingest_files(context, files, call_id)
    task = SpawnTask(
        query=query,
        preload=preload,
        answer_limit=context.direct_limit,
        answer_limit_tokens=context.config.max_direct_output_tokens,
    )
    child = yield from processes.create_child(
        context.handle,
        preload,
        state="ready",
        program=processes.StoredProgram(linked.key, linked.digest, linked.bundle, linked.price),
        brief=encode_task(task),
        title=title_of(task),
        output=_answer_stream(context, arguments) if arguments.background else None,
        call_id=call_id,
    )
    yield Disk(lambda: context.wake(child.id))
    return child.id


def _result(context: Context, child: str, arguments: Spawn) -> Operation[ToolOutcome]:
    if arguments.background:
        return process_result((yield from process_records.record(context.prefix, child)))
    return Started((child,))


def _can_be_followed(context: Context) -> bool:
    """Return whether the agent has a tool to read or await a background child."""
    return bool(context.enabled & {"read_fd", "wait"})


def _answer_stream(context: Context, arguments: Spawn) -> processes.ChildStream | None:
    if not context.fds_on:
        return None
    return processes.ChildStream(f"text of {arguments.program_name}", context.config.default_page_size)


def _check(context: Context, fds: list[object], files: Sequence[File]) -> Operation[None]:
    """Check that all preloads exist before anything is created, so a refused call leaves nothing behind."""
    for each in fds:
        chosen = selector(each)
        yield from contents.part_of(context.handle, chosen.fd, chosen.part)
    for file in files:
        with ExitStack() as held:
            yield Disk(partial(_open, file, held), must_end=True)


def _shared_ids(context: Context, fds: list[object], call_id: str | None) -> Operation[list[str]]:
    """Return the ids to share. A part is extracted first and shared under the extraction's id, so that the
    child holds nothing else of the content."""
    ids: list[str] = []
    for number, each in enumerate(fds):
        chosen = selector(each)
        fd = chosen.fd
        if chosen.part is not None:
            slot = None if call_id is None else f"{call_id}/part{number}"
            fd = (yield from contents.extract(context.handle, chosen.fd, chosen.part, call_id=slot)).fd
        if fd not in ids:
            ids.append(fd)
    return ids


def _open(file: File, held: ExitStack) -> BufferedReader:
    """Open a file. `held` closes it, even if the operation is abandoned before it receives the file."""
    return held.enter_context(os.fdopen(file.open(), "rb"))


def _ingest_files(context: Context, files: Sequence[File], call_id: str | None) -> Operation[list[str]]:
    """Store the files as descriptors of this process: of a compressed file, what it holds; a document and its
    text as two. Return their ids."""
    from fdstore.files.unwrapping import unwrap  # slow to import, and not needed by other calls

    ids = []
    for number, file in enumerate(files):
        with ExitStack() as held:
            binary = yield Disk(partial(_open, file, held), must_end=True)
            given = yield Disk(partial(unwrap, binary, file.path, held), must_end=True)
            for part, each in enumerate(given):
                as_bytes = each.is_document or is_binary(each.head)
                slot = f"file{number}" if part == 0 else f"file{number}text"
                descriptor = yield from contents.ingest(
                    context.handle,
                    each.file,
                    each.source,
                    None if as_bytes else context.config.default_page_size,
                    "bytes" if as_bytes else "backslashreplace",
                    call_id=None if call_id is None else f"{call_id}/{slot}",
                    media_type=each.media_type,
                )
                ids.append(descriptor.fd)
    return ids


def describe(context: Context) -> str:
    programs = "\n".join(
        f"- {name}: {linked.description}" if linked.description else f"- {name}"
        for name, linked in context.linked.items()
    )
    return (
        "Start another agent and get its answer. It knows only the query and what you preload. Several "
        f"spawn calls in one turn run at the same time. Programs:\n{programs}"
    )


def explain(context: Context) -> str:
    programs = ", ".join(context.linked)
    example = f'spawn(program_name="{next(iter(context.linked))}", query="..."'
    text = (
        "# Other agents\n"
        f"spawn starts one of these programs: {programs}. The new agent knows only your query and what you "
        "preload, and its last message is your result. Spawn several in one turn to run them at once."
    )
    if not context.fds_on:
        return f"{text} Example: {example})"
    text = (
        f"{text} Hand texts on by id, whole or in part, instead of repeating them; they are read under "
        f'the same ids: {example}, additional_preload_fds=["fd:1", "fd:1#L120-139"]). A part gets an id '
        "of its own."
    )
    if not _can_be_followed(context):
        return text
    return (
        f"{text} With background=true you continue immediately with the fd of its text, which grows as it "
        f"works: {example}, background=true)."
    )


TOOL = Tool(
    name="spawn",
    title="Start another agent",
    position=110,
    works_on="processes",
    effect="adds",
    needs=LINKED_PROGRAMS,
    starts="agents",
    arguments=Spawn,
    describe=describe,
    explain=explain,
    run=run,
    failing=(
        {"program_name": "expret", "query": "Is it legal?"},
        {"program_name": "expert", "query": "Is it legal?", "additional_preload_fds": ["fd:9"]},
        {"program_name": "expert", "query": "Is it legal?", "additional_preload_files": ["absent.md"]},
        {"program_name": "expert", "query": ""},
    ),
    failing_when_full=({"program_name": "expert", "query": "Is it legal?"},),
)
