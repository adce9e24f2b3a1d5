"""`fd_to_file`: the exact text to a file below the export root, without passing through the model."""

from __future__ import annotations

from fdstore.files import Target
from fdstore.render import Rendered, fd_file_result
from fdstore.store import contents
from fdstore.store.operation import Operation
from fdstore.text.selection import wanted
from fdstore.tools.tool import Arguments, Context, Fd, Outcome, Switch, Tool


class FDToFile(Arguments, frozen=True, kw_only=True):
    fd: Fd
    file_path: str
    mode: Switch = "write"
    create: bool = True
    exist_ok: bool = True


def run(context: Context, arguments: FDToFile, call: str | None) -> Operation[Outcome]:
    # a second run of the same call must not append a second time
    slot = f"{call}/file"
    if call is not None:
        [done_before] = yield [("HGET", context.space.keys.calls, slot)]
        if done_before is not None:
            return Rendered(done_before.decode("utf-8"))
    chosen = wanted(arguments.fd)
    target = Target(
        arguments.file_path,
        mode=arguments.mode,
        create=arguments.create,
        exist_ok=arguments.exist_ok,
        root=context.export_root,
    )
    done = yield from contents.export(context.space, chosen.fd, chosen.part, target, arguments.mode)
    result = fd_file_result(done, arguments.create, arguments.exist_ok)
    if call is not None:
        yield [("HSET", context.space.keys.calls, slot, result)]
    return result


def describe(context: Context) -> str:
    return (
        "Write a stored text, or the part a selector names, exactly to a file. Paths are relative. "
        'mode="append" adds to the file. create=false needs the file to be there; exist_ok=false needs '
        "it not to be."
    )


TOOL = Tool(name="fd_to_file", arguments=FDToFile, describe=describe, run=run)
