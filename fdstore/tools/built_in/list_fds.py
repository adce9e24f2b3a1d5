"""`list_fds`: list the descriptors of this process, and how much of each its agent has read. With a prefix it
lists named ones alone, in the order of their names, as a directory."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import msgspec

from fdstore.elements.render import fd_list, fd_list_line
from fdstore.errors import NotFound, PositionOutOfRange, StoreLostData
from fdstore.model.records import Descriptor
from fdstore.results.context import Context
from fdstore.results.coverage import ReadParts, count_in, merge
from fdstore.results.tool_outcome import ToolOutcome
from fdstore.store.contents import descriptors, naming
from fdstore.store.contents.locating import pages_of_chars
from fdstore.text.names import NAME
from fdstore.tools.arguments import Arguments, Number
from fdstore.tools.tool import Tool, never
from fdstore.wire.operation import Operation

MIN_LINE_CHARS = 60
"""The shortest line of the list is about as long."""

MARGIN_CHARS = 30
"""Allowance per line for the pages read and its end."""


class ListFDs(Arguments, frozen=True, kw_only=True):
    start: Annotated[Number, msgspec.Meta(description="The first entry of the list; 1 is the first.")] = 1
    count: Annotated[Number, msgspec.Meta(description="How many entries.")] = 50
    prefix: Annotated[
        str, msgspec.Meta(description="Only names that begin so: logs/ lists name:logs/...")
    ] = ""


def run(context: Context, arguments: ListFDs, call_id: str | None) -> Operation[ToolOutcome]:
    limit = context.config.max_read_chars
    count = min(arguments.count, max(limit // MIN_LINE_CHARS, 1))
    prefix = arguments.prefix.removeprefix(NAME)
    if arguments.prefix:
        held, total = yield from naming.page_of_names(context.handle, prefix, arguments.start, count)
    else:
        held, total = yield from descriptors.list_page(context.handle, arguments.start, count)
    if arguments.start > max(total, 1):
        raise PositionOutOfRange("the list", "descriptor", arguments.start, total)
    fitting = _fitting(held, limit, context.handle.id)
    next_start = arguments.start + (count if fitting == len(held) else fitting)
    held = held[:fitting]
    read: dict[str, int] = {}
    if context.read_parts is not None:
        parts = context.read_parts()
        for each in held:
            # a name may mean another content than the one that was read through it
            if each.kind == "text" and each.fd.startswith("fd:"):
                read[each.fd] = yield from _pages_read(context, each, parts.get(each.fd, ReadParts()))
    next_page = next_start if next_start <= total else None
    return fd_list(held, total, next_page, read, process=context.handle.id)


def _fitting(held: list[Descriptor], limit: int, process: str) -> int:
    """Return how many lines of the list fit in about `limit` characters, at least one."""
    left = limit
    for shown, each in enumerate(held):
        left -= len(fd_list_line(each, process=process)) + MARGIN_CHARS
        if left < 0 and shown:
            return shown
    return len(held)


def _pages_read(context: Context, descriptor: Descriptor, parts: ReadParts) -> Operation[int]:
    """Return how many pages were read. Characters are located with the index: no round trip where it is
    cached, one for each part where it is not."""
    pages = parts.pages
    for first, last in parts.chars:
        if count_in(pages, descriptor.pages) == descriptor.pages:
            break
        with suppress(NotFound, PositionOutOfRange, StoreLostData):  # closed or damaged meanwhile
            run = yield from pages_of_chars(context.handle, descriptor.fd, first, last)
            pages = merge((*pages, run))
    return count_in(pages, descriptor.pages)


def describe(context: Context) -> str:
    return "List the stored texts you can read, with their sizes and where they came from."


def explain(context: Context) -> str:
    return "- what is stored: list_fds()"


TOOL = Tool(
    name="list_fds",
    title="List stored texts",
    position=30,
    works_on="descriptors",
    effect="reads",
    permission="read",
    held_back=True,
    arguments=ListFDs,
    describe=describe,
    explain=explain,
    run=run,
    makes=never,
    failing=({"start": 99},),
    shown={
        "fd_list": ({},),
    },
)
