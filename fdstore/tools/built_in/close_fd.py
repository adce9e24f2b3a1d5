"""`close_fd`: close a descriptor. The content lives while any process holds a descriptor of it."""

from __future__ import annotations

from fdstore.elements.render import fd_close
from fdstore.results.context import Context
from fdstore.results.tool_outcome import ToolOutcome
from fdstore.store.contents import descriptors
from fdstore.text.selection import fd_id
from fdstore.tools.arguments import Arguments, WholeFd
from fdstore.tools.tool import Tool
from fdstore.wire.operation import Operation


class CloseFD(Arguments, frozen=True, kw_only=True):
    fd: WholeFd


def run(context: Context, arguments: CloseFD, call_id: str | None) -> Operation[ToolOutcome]:
    fd = fd_id(arguments.fd)
    yield from descriptors.close(context.handle, fd, call_id=call_id)
    return fd_close(fd)


def describe(context: Context) -> str:
    return "Drop a stored text you no longer need. Others who hold it keep it."


def explain(context: Context) -> str:
    return '- drop what you no longer need: close_fd(fd="fd:1")'


TOOL = Tool(
    name="close_fd",
    title="Drop a stored text",
    position=70,
    works_on="descriptors",
    effect="destroys",
    repeatable=True,
    permission="write",
    held_back=True,
    arguments=CloseFD,
    describe=describe,
    explain=explain,
    run=run,
    failing=({"fd": "fd:9"},),
    shown={
        "fd_close": ({"fd": "fd:2"},),
    },
)
