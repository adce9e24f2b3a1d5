"""`diff_fd`: show what differs between two texts, as `diff -u` does.

A long diff is stored, as the long result of any function is. That is an addition, so MCP callers need the
permission to write.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from fdstore.elements.render import fd_diff
from fdstore.errors import TooLarge
from fdstore.results.context import Context
from fdstore.results.tool_outcome import ToolOutcome
from fdstore.results.wrapping import exceeds_threshold, wrap_text
from fdstore.store.contents import comparing
from fdstore.text.selection import parse_request
from fdstore.tools.arguments import Arguments, Fd
from fdstore.tools.tool import Tool
from fdstore.wire.operation import Operation

MAX_DIFF_BYTES = 10_000_000
"""The largest diff that is stored; it is held in memory first."""

SOURCE = "diff"


class DiffFD(Arguments, frozen=True, kw_only=True):
    a: Fd
    b: Fd
    context: Annotated[
        int,
        msgspec.Meta(ge=0, le=comparing.MAX_CONTEXT, description="Lines to show around each change."),
    ] = 3


class _Collected:
    """The pieces of a diff. Raises `TooLarge` instead of keeping more than `MAX_DIFF_BYTES`."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size_bytes = 0

    def add(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.size_bytes += len(piece)
        if self.size_bytes > MAX_DIFF_BYTES:
            advice = "compare parts, such as fd:3#L1-1000, or with less context"
            raise TooLarge("the diff", self.size_bytes, MAX_DIFF_BYTES, advice, "bytes or more")


def run(context: Context, arguments: DiffFD, call_id: str | None) -> Operation[ToolOutcome]:
    a, b = parse_request(arguments.a), parse_request(arguments.b)
    diff = _Collected()
    found = yield from comparing.compare(context.handle, a, b, context=arguments.context, write=diff.add)
    text = b"".join(diff.pieces).decode("utf-8")
    if not exceeds_threshold(context, text, SOURCE):
        return fd_diff(found, text)
    return (yield from wrap_text(context, text, SOURCE, call_id, is_same=False))


def describe(context: Context) -> str:
    return (
        "Show which lines differ between two stored texts, or parts of them, as diff -u. Lines are numbered "
        "as in the whole texts."
    )


def explain(context: Context) -> str:
    return '- what changed from one text to another: diff_fd(a="fd:1", b="fd:2")'


TOOL = Tool(
    name="diff_fd",
    title="Compare two stored texts",
    position=25,
    works_on="descriptors",
    effect="reads",
    permission="write",
    held_back=True,
    arguments=DiffFD,
    describe=describe,
    explain=explain,
    run=run,
    failing=(
        {"a": "fd:1", "b": "fd:9"},
        {"a": "fd:1", "b": "fd:1#L9000"},
        {"a": "fd:1", "b": "fd:3"},
    ),
    shown={
        "fd_diff": ({"a": "fd:1#L1-50", "b": "fd:1#L11-60", "context": 0},),
    },
)
