"""`list_fds`: list the descriptors of this process."""

from __future__ import annotations

from typing import Annotated

import msgspec

from fdstore.errors import PositionOutOfRange
from fdstore.render import fd_list
from fdstore.store import descriptors
from fdstore.tools.arguments import Arguments, Number
from fdstore.tools.context import Context
from fdstore.tools.tool import Tool, never
from fdstore.tools.tool_outcome import ToolOutcome
from fdstore.wire.operation import Operation


class ListFDs(Arguments, frozen=True, kw_only=True):
    start: Annotated[Number, msgspec.Meta(description="The first entry of the list; 1 is the first.")] = 1
    count: Annotated[Number, msgspec.Meta(description="How many entries.")] = 50


def run(context: Context, arguments: ListFDs, call_id: str | None) -> Operation[ToolOutcome]:
    held, total = yield from descriptors.list_page(context.handle, arguments.start, arguments.count)
    if arguments.start > max(total, 1):
        raise PositionOutOfRange("the list", "descriptor", arguments.start, total)
    next_start = arguments.start + arguments.count
    return fd_list(held, total, next_start if next_start <= total else None)


def describe(context: Context) -> str:
    return "List the stored texts you can read, with their sizes and where they came from."


TOOL = Tool(name="list_fds", arguments=ListFDs, describe=describe, run=run, makes=never)
