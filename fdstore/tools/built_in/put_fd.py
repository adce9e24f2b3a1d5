"""`put_fd`: store a file below the preload root, or a whole text of the model, as a new descriptor.

Texts that a model writes itself are the task of `write_fd`. A file goes to the store without passing through
the model; one that is not UTF-8 is stored as bytes; of a compressed file, what it holds is stored, and a
document together with its text, as two descriptors.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial
from io import BufferedReader
from typing import Annotated

import msgspec

from fdstore.elements.build import Rendered
from fdstore.elements.facts import join_facts
from fdstore.elements.render import fd_write
from fdstore.errors import InvalidArgument, NotEncoded, PathRefused
from fdstore.files.paths import Root
from fdstore.files.source import open_below
from fdstore.model.records import Descriptor
from fdstore.results.context import Context
from fdstore.results.fd_results import Display, render_fd
from fdstore.results.tool_outcome import ToolOutcome, ToolResult
from fdstore.store.contents import contents
from fdstore.tools.arguments import Arguments, check_storable
from fdstore.tools.tool import Tool
from fdstore.wire.operation import Disk, Operation

SOURCE = "text"


class PutFD(Arguments, frozen=True, kw_only=True):
    text: Annotated[
        str | msgspec.UnsetType,
        msgspec.Meta(
            description="The text, exactly as it is to be stored.", extra_json_schema={"type": "string"}
        ),
    ] = msgspec.UNSET
    file: Annotated[
        str | msgspec.UnsetType,
        msgspec.Meta(
            description="Instead of text: a file to store, of any size. Relative, without '..' and hidden "
            "names (.x).",
            extra_json_schema={"type": "string"},
        ),
    ] = msgspec.UNSET

    @staticmethod
    def hidden(context: Context | None) -> frozenset[str]:
        return frozenset() if context is None or context.preload_root is not None else frozenset({"file"})


def run(context: Context, arguments: PutFD, call_id: str | None) -> Operation[ToolOutcome]:
    text, file = arguments.text, arguments.file
    if isinstance(text, str) and isinstance(file, str):
        raise InvalidArgument("file", "give text or file, not both")
    if isinstance(file, str):
        if context.preload_root is None:
            raise PathRefused(file, "no directory was named from which files may be stored; give text")
        return (yield from _put_file(context, file, context.preload_root, call_id))
    if not isinstance(text, str):
        raise InvalidArgument("text", "is missing")
    made = yield from contents.create(
        context.handle,
        check_storable("text", text),
        SOURCE,
        context.config.default_page_size,
        call_id=call_id,
    )
    return fd_write(made, len(text), f"The text is stored as {made.fd}.")


def _put_file(context: Context, file: str, root: Root, call_id: str | None) -> Operation[ToolOutcome]:
    from fdstore.files.unwrapping import Unwrapped, unwrap  # slow to import, and not needed by other calls

    def ingest(each: Unwrapped, errors: contents.IngestErrors, slot: str | None) -> Operation[Descriptor]:
        def report(done: int) -> None:
            if context.progress is not None:
                context.progress(done, each.size)

        page_size = None if errors == "bytes" else context.config.default_page_size
        return contents.ingest(
            *(context.handle, each.file, each.source, page_size, errors, report),
            media_type=each.media_type,
            call_id=slot,
        )

    made: list[Rendered] = []
    with ExitStack() as held:
        binary = yield Disk(partial(_open, file, root, held), must_end=True)
        given = yield Disk(partial(unwrap, binary, file, held), must_end=True)
        for number, each in enumerate(given):
            slot = call_id if call_id is None or number == 0 else f"{call_id}/text"
            if each.kind == "bytes":
                stored = yield from ingest(each, "bytes", slot)
            else:
                try:
                    stored = yield from ingest(each, "strict", slot)
                except NotEncoded:
                    binary.seek(0)
                    stored = yield from ingest(each, "bytes", slot)
            made.append((yield from render_fd(context, stored.fd, Display(may_be_whole=False))))
    if len(made) == 1:
        return made[0]
    return ToolResult(
        "\n".join(each.text for each in made), False, join_facts(*(each.facts for each in made))
    )


def _open(file: str, root: Root, held: ExitStack) -> BufferedReader:
    """Open a file. `held` closes it, even if the operation is abandoned before it receives the file."""
    return held.enter_context(os.fdopen(open_below(file, root), "rb"))


def describe(context: Context) -> str:
    if context.preload_root is None:
        return "Store a whole text as a new fd."
    return "Store a file on disk as a new fd, unread; or a text that is whole."


def explain(context: Context) -> str:
    file, text = (
        '- store a file on disk: put_fd(file="build.log")',
        '- store a whole text: put_fd(text="...")',
    )
    if context.preload_root is None:
        return text
    return file if "write_fd" in context.enabled else f"{file}\n{text}"


TOOL = Tool(
    name="put_fd",
    title="Store a text",
    position=50,
    works_on="descriptors",
    effect="adds",
    permission="write",
    arguments=PutFD,
    describe=describe,
    explain=explain,
    run=run,
    failing=(
        {},
        {"file": "../secret"},
        {"file": "absent.md"},
    ),
    failing_when_full=({"text": "more"},),
)
