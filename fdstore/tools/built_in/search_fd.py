"""`search_fd`: find matching lines and show them as `grep -n` does."""

from __future__ import annotations

from typing import Annotated

import msgspec

from fdstore.elements.render import fd_extraction
from fdstore.elements.render_search import LINE_CHARS, fd_search
from fdstore.elements.stored_message import StoredResult
from fdstore.model.records import Hit, SearchResult
from fdstore.results.context import Context
from fdstore.results.tool_outcome import ToolOutcome
from fdstore.store.contents import locating, reading, searching
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.search import MAX_CONTEXT, MAX_MATCHES
from fdstore.text.selection import Part, Selector, parse_request
from fdstore.tools.arguments import Arguments, Fd
from fdstore.tools.tool import Tool, extracts
from fdstore.wire.operation import Operation

MARGIN_CHARS = 60
"""Allowance per printed line for its number and the marks where it is cut."""


class SearchFD(Arguments, frozen=True, kw_only=True):
    fd: Annotated[Fd, msgspec.Meta(description="fd:3, or a part such as fd:3#L10-20.")]
    pattern: Annotated[
        str,
        msgspec.Meta(description="Regular expression for a line (RE2: no look-around)."),
    ]
    context: Annotated[int, msgspec.Meta(ge=0, le=MAX_CONTEXT, description="Lines around a match.")] = 0
    max_matches: Annotated[
        int, msgspec.Meta(ge=1, le=MAX_MATCHES, description="To show; all are counted.")
    ] = searching.MAX_SHOWN
    ignore_case: bool = False
    extract_to_new_fd: Annotated[
        bool, msgspec.Meta(description="Store all matching lines as a new fd, unread.")
    ] = False


def run(context: Context, arguments: SearchFD, call_id: str | None) -> Operation[ToolOutcome]:
    handle = context.handle
    chosen = parse_request(arguments.fd)
    query = (handle, chosen.fd, chosen.part, arguments.pattern)
    if arguments.extract_to_new_fd:
        result, extraction = yield from searching.search_extract(
            *query,
            context=arguments.context,
            max_matches=1,
            ignore_case=arguments.ignore_case,
            call_id=call_id,
        )
        first = yield from _first_line(handle, chosen.fd, (yield from _counted(handle, chosen)))
        return fd_extraction(
            chosen.fd,
            extraction,
            "search",
            first,
            result.lines_searched,
            position="all" if chosen.part is None else None,
            matches=result.matches,
            tools=context.enabled,
        )
    result, near = yield from searching.search_or_near(
        *query,
        context=arguments.context,
        max_matches=arguments.max_matches,
        ignore_case=arguments.ignore_case,
        progress=context.progress,
    )
    result = limit_hits(result, context.config.max_read_chars)
    more = None
    if result.shown < result.matches:
        more = yield from _remaining_selector(handle, chosen, result)
    return fd_search(result, more, near, context.enabled)


def limit_hits(result: SearchResult, limit: int) -> SearchResult:
    """Keep the first hits that fit in about `limit` characters, at least one."""
    left = limit
    for shown, hit in enumerate(result.hits):
        left -= _printed_chars(hit)
        if left < 0 and shown:
            return msgspec.structs.replace(result, hits=result.hits[:shown], shown=shown)
    return result


def _printed_chars(hit: Hit) -> int:
    lines = [hit.text, *(near.text for near in hit.before), *(near.text for near in hit.after)]
    return sum(min(len(line), LINE_CHARS) + MARGIN_CHARS for line in lines)


def _remaining_selector(handle: ProcessHandle, chosen: Selector, result: SearchResult) -> Operation[str]:
    """Return the selector of the searched text after the last hit shown: lines, or characters if it ends
    inside a line."""
    hit, part = result.hits[-1], (yield from _counted(handle, chosen))
    if part is not None and part.mode != "line":
        end = yield from reading.read(handle, chosen.fd, Part(part.mode, part.last, 1))
        if end.truncated:
            after = hit.line_start + hit.left_out[0] + len(hit.text) + hit.left_out[1] + 1
            return f"{chosen.fd}#C{after}-{end.chars.rpartition('-')[2]}"
    first = yield from _first_line(handle, chosen.fd, part)
    return f"{chosen.fd}#L{hit.line + 1}-{first + result.lines_searched - 1}"


def _counted(handle: ProcessHandle, chosen: Selector) -> Operation[Part | None]:
    """Return the part that was searched: lines, or what else is counted, cut at the end of the text."""
    part = chosen.part
    if part is None or (isinstance(part, Part) and part.mode == "line"):
        return part
    return (yield from locating.clamp_span(handle, chosen.fd, part))


def _first_line(handle: ProcessHandle, fd: str, part: Part | None) -> Operation[int]:
    """Return the number of the first line that was searched."""
    if part is None:
        return 1
    if part.mode == "line":
        return part.start
    begins = yield from reading.read(handle, fd, Part(part.mode, part.start, 1))
    return max(int(begins.lines.partition("-")[0]), 1)


def describe(context: Context) -> str:
    return (
        'Find matching lines of a stored text, as grep -n; more="fd:3#L120-900" names what is left to search.'
    )


def explain(context: Context) -> str:
    return '- find lines: search_fd(fd="fd:1", pattern="ERROR", context=2)'


def offer(stored: StoredResult) -> str:
    if stored.shows in ("all", "nothing") or stored.has_long_lines:
        return ""
    return f'find lines with search_fd(fd="{stored.fd}", pattern="...")'


TOOL = Tool(
    name="search_fd",
    title="Search a stored text",
    position=20,
    works_on="descriptors",
    effect="reads",
    permission="read",
    held_back=True,
    preloaded=True,
    arguments=SearchFD,
    describe=describe,
    explain=explain,
    offer=offer,
    run=run,
    makes=extracts,
    failing=(
        {"fd": "fd:9", "pattern": "FAILED"},
        {"fd": "fd:1", "pattern": "(?=FAILED)"},
        {"fd": "fd:1#L9000", "pattern": "FAILED"},
        {"fd": "fd:3", "pattern": "FAILED"},
    ),
    shown={
        "fd_search": ({"fd": "fd:1", "pattern": "FAILED", "context": 1, "max_matches": 3},),
    },
)
