"""`fd_to_file`: the exact text to a file below the export root, without passing through the model."""

from __future__ import annotations

from typing import Annotated

import msgspec

from fdstore.files import Target
from fdstore.render import fd_file_result
from fdstore.store import contents
from fdstore.store.operation import Operation
from fdstore.text.selection import wanted
from fdstore.tools.tool import Arguments, Context, Fd, Outcome, Tool, WriteMode


class FDToFile(Arguments, frozen=True, kw_only=True):
    fd: Fd
    file_path: Annotated[str, msgspec.Meta(description="Relative, and without '..'.")]
    mode: WriteMode = "write"
    create: Annotated[bool, msgspec.Meta(description="false: the file must be there already.")] = True
    exist_ok: Annotated[bool, msgspec.Meta(description="false: the file must not be there yet.")] = True


def run(context: Context, arguments: FDToFile, call: str | None) -> Operation[Outcome]:
    chosen = wanted(arguments.fd)
    target = Target(
        arguments.file_path,
        mode=arguments.mode,
        create=arguments.create,
        exist_ok=arguments.exist_ok,
        root=context.export_root,
    )
    done = yield from contents.export(context.space, chosen.fd, chosen.part, target, arguments.mode)
    return fd_file_result(done, arguments.create, arguments.exist_ok)


def describe(context: Context) -> str:
    return (
        "Write a stored text, or a part of it, exactly to a file, without reading it. Directories must "
        "be there already."
    )


TOOL = Tool(name="fd_to_file", arguments=FDToFile, describe=describe, run=run)
