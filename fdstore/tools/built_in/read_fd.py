"""`read_fd`: read a part of a text, or extract it as a new descriptor."""

from __future__ import annotations

from typing import Annotated

import msgspec

from fdstore.elements.render import fd_content, fd_extraction
from fdstore.elements.stored_message import StoredResult
from fdstore.errors import InvalidArgument, NotText
from fdstore.results import pictures
from fdstore.results.context import Context
from fdstore.results.tool_outcome import ToolOutcome
from fdstore.store.contents import contents, locating, reading
from fdstore.store.streams import completion
from fdstore.text.selection import FIRST_PAGE, Selector, parse_request
from fdstore.tools.arguments import UNSET, Arguments, Count, Fd, Start, Units, unset_to_none
from fdstore.tools.tool import Tool, extracts
from fdstore.wire.operation import Operation

MAX_WAIT_S = 60.0
"""Maximum wait of one call, which occupies a worker slot meanwhile. To wait longer a model calls again."""

MAX_WAIT_WRITTEN_S = 86_400
"""Largest `wait_seconds` accepted; more is taken for a mistake and refused."""


class ReadFD(Arguments, frozen=True, kw_only=True):
    fd: Fd
    mode: Units = UNSET
    start: Start = UNSET
    count: Count = UNSET
    read_all: bool = False
    extract_to_new_fd: Annotated[bool, msgspec.Meta(description="Store this part as a new fd, unread.")] = (
        False
    )
    wait_seconds: Annotated[
        float,
        msgspec.Meta(
            ge=0,
            le=MAX_WAIT_WRITTEN_S,
            description="Wait for a part still being written, at most 60.",
        ),
    ] = 0
    page: Start = UNSET
    start_line: Start = UNSET
    end_line: Start = UNSET

    @staticmethod
    def hidden(_: Context | None) -> frozenset[str]:
        # accepted because models write them; hidden because one way is enough to learn
        return frozenset({"page", "start_line", "end_line"})


def parse_selector(arguments: ReadFD) -> Selector:
    """Return the selector of a call. `page=N` is an alias of `start=N`; `start_line` and `end_line` of
    `mode="line"`. Raises `InvalidArgument` for contradicting arguments."""
    mode, start, count = map(unset_to_none, (arguments.mode, arguments.start, arguments.count))
    page, first, last = map(unset_to_none, (arguments.page, arguments.start_line, arguments.end_line))
    if page is not None:
        if start is not None or mode not in (None, "page"):
            raise InvalidArgument("page", "use page alone, or mode and start")
        mode, start = "page", page
    if first is not None or last is not None:
        if start is not None or count is not None or mode not in (None, "line"):
            raise InvalidArgument("start_line", 'use start_line and end_line alone, or mode="line"')
        first = first or 1
        last = last or first
        if last < first:
            raise InvalidArgument("end_line", f"must not be before start_line, {first}")
        mode, start, count = "line", first, last - first + 1
    return parse_request(arguments.fd, mode, start, count, whole=arguments.read_all, default=FIRST_PAGE)


def run(context: Context, arguments: ReadFD, call_id: str | None) -> Operation[ToolOutcome]:
    chosen = parse_selector(arguments)
    wait_s = min(arguments.wait_seconds, MAX_WAIT_S)
    yield from completion.until_complete(context.handle, chosen.fd, chosen.part, wait_s)
    if not arguments.extract_to_new_fd:
        limit = context.config.max_read_chars
        try:
            found = yield from reading.read(context.handle, chosen.fd, chosen.part, limit)
        except NotText as error:
            if chosen.part not in (None, FIRST_PAGE):
                raise
            return (yield from pictures.show(context, chosen.fd, error))
        return fd_content(found)
    extraction = yield from contents.extract(context.handle, chosen.fd, chosen.part, call_id=call_id)
    if chosen.part is None:
        return fd_extraction(chosen.fd, extraction, "page", position="all", tools=context.enabled)
    part = yield from locating.clamp_span(context.handle, chosen.fd, chosen.part)
    return fd_extraction(chosen.fd, extraction, part.mode, part.start, part.count, tools=context.enabled)


def describe(context: Context) -> str:
    return (
        f"Read a stored text: its first page, or the part that you name, up to "
        f"{context.config.max_read_chars} characters. An image or PDF is shown."
    )


def explain(context: Context) -> str:
    return '- the next page: read_fd(fd="fd:1", start=2)\n- lines 120 to 139: read_fd(fd="fd:1#L120-139")'


def offer(stored: StoredResult) -> str:
    match stored.shows:
        case "nothing":
            return f'look at it with read_fd(fd="{stored.fd}")' if stored.is_viewable else ""
        case "all":
            return ""
    if stored.is_open:
        return f'wait for more with read_fd(fd="{stored.fd}", start={stored.pages}, wait_seconds=10)'
    if stored.has_long_lines and stored.pages > 1:
        start = 1 if stored.shows == "part" else stored.page_size + 1
        chars = f"{start}-{start + stored.page_size - 1}"
        return f'read characters with read_fd(fd="{stored.fd}#C{chars}")'
    if stored.shows == "part":
        return f'read it with read_fd(fd="{stored.fd}")'
    return f'read on with read_fd(fd="{stored.fd}", start=2)' if stored.pages > 1 else ""


TOOL = Tool(
    name="read_fd",
    title="Read a stored text",
    position=10,
    works_on="descriptors",
    effect="reads",
    permission="read",
    held_back=True,
    preloaded=True,
    arguments=ReadFD,
    describe=describe,
    explain=explain,
    offer=offer,
    run=run,
    makes=extracts,
    failing=(
        {"fd": "fd:9"},
        {"fd": "fd:1", "start": 99},
        {"fd": "fd:1", "mode": "line", "start": 9000},
        {"fd": "fd:1", "start": 0},
        {"fd": "fd:2", "read_all": True},
        {"fd": "fd:3"},
    ),
    shown={
        "fd_content": (
            {"fd": "fd:1#L79-81"},
            {"fd": "fd:1", "start": 2},
        ),
        "fd_extraction": ({"fd": "fd:1#P2-3", "extract_to_new_fd": True},),
        "fd_error": ({"fd": "fd:99"},),
    },
)
