"""`write_fd`: store a text of the model as a descriptor, whole or piece by piece.

Without `fd` the text is a note, sealed immediately; with `eof=false` it opens a stream that the process
writes. The stream belongs to the process and not to its worker, so a later attempt of the process continues
it.

A repeated call changes nothing: each piece of its text, and the end, is keyed by the call id.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from fdstore.elements.render import fd_write
from fdstore.errors import Fenced, InvalidArgument, StreamClosed
from fdstore.results.context import Context
from fdstore.results.tool_outcome import ToolOutcome
from fdstore.store.contents import contents
from fdstore.store.contents.resolving import resolve
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.streams import streams
from fdstore.text.selection import fd_id
from fdstore.tools.arguments import Arguments, WholeFd, check_storable
from fdstore.tools.tool import Tool
from fdstore.wire.operation import Operation

SOURCE = "note"

TRIES = 100
"""Maximum number of tries to append a piece while other calls append to the same stream. A try fails only
because another call has stored a piece, so a call fails at most as often as other calls have pieces."""


class WriteFD(Arguments, frozen=True, kw_only=True):
    data: Annotated[str, msgspec.Meta(description="The text, exactly as it is to be stored.")]
    fd: Annotated[
        WholeFd,
        msgspec.Meta(
            description="An open fd that you write; the text is added to its end. A new one by default."
        ),
    ] = None
    eof: Annotated[
        Any,
        msgspec.Meta(
            description="Whether the text of the fd is complete with this. By default that of a new one "
            "is, and that of an open one is not.",
            extra_json_schema={"type": "boolean"},
        ),
    ] = None


def run(context: Context, arguments: WriteFD, call_id: str | None) -> Operation[ToolOutcome]:
    text, eof = check_storable("data", arguments.data), arguments.eof
    if eof is not None and not isinstance(eof, bool):
        raise InvalidArgument("eof", "must be true or false")
    handle, page_size = context.handle, context.config.default_page_size
    if arguments.fd is not None:
        fd = fd_id(arguments.fd)
    elif eof is False:
        fd = (yield from streams.open_stream(handle, SOURCE, page_size, lease_s=None, call_id=call_id)).fd
    else:
        note = yield from contents.create(handle, text, SOURCE, page_size, call_id=call_id)
        return fd_write(note, len(text), f"The text is stored as {note.fd}.")

    yield from _add(handle, fd, text, ends=bool(eof), call_id=call_id)
    now = (yield from resolve(handle, fd))[0].descriptor
    if now.state == "open":
        message = f'{fd} is open: add to it with write_fd(fd="{fd}", data="..."), and end it with eof=true.'
    else:
        message = f"{fd} is complete."
    return fd_write(now, len(text), message)


def _add(handle: ProcessHandle, fd: str, text: str, *, ends: bool, call_id: str | None) -> Operation[None]:
    """Append to a stream that this process writes, and seal it if `ends`. Raises `NotFound`, `StreamClosed`,
    `InvalidArgument` (the stream has another writer), `QuotaExceeded`, `Fenced`."""
    info, _ = yield from resolve(handle, fd)
    descriptor = info.descriptor
    ended = None if call_id is None else f"{call_id}/eof"
    leased, ended_before = yield [
        ("HGET", info.keys.record, "writer_until"),
        ("HEXISTS", handle.keys.calls, ended or ""),
    ]
    if ended_before:
        return
    if descriptor.state != "open":
        raise StreamClosed(fd, descriptor.state)
    if descriptor.producer != handle.id or leased:
        writer = "a program" if descriptor.producer == handle.id else descriptor.producer
        raise InvalidArgument(
            "fd", f"{fd} is written by {writer}; you write what you opened yourself, and the in_fd of a pipe"
        )
    size = streams.PIECE_CHARS
    for number, start in enumerate(range(0, len(text), size)):
        piece = None if call_id is None else f"{call_id}/text/{number}"
        yield from _add_piece(handle, fd, text[start : start + size], piece)
    if ends:
        yield from (yield from streams.resume(handle, fd)).seal(0, call_id=ended)


def _add_piece(handle: ProcessHandle, fd: str, piece: str, call_id: str | None) -> Operation[None]:
    """Append a piece at the current end of the stream, retrying when a concurrent call was first."""
    for tries_left in reversed(range(TRIES)):
        appender = yield from streams.resume(handle, fd)
        try:
            return (yield from appender.store_once(piece, call_id))
        except Fenced:
            if not tries_left:
                raise


def describe(context: Context) -> str:
    return (
        "Write a text yourself, such as a note or a draft, as a new fd; or bit by bit, for others who read "
        "it meanwhile: begin with eof=false, add with fd, end with eof=true."
    )


def explain(context: Context) -> str:
    return (
        '- write a text yourself: write_fd(data="...")\n'
        '- begin one that others read while you write it: write_fd(data="...", eof=false)'
    )


TOOL = Tool(
    name="write_fd",
    title="Write a stored text",
    position=40,
    works_on="descriptors",
    effect="adds",
    permission="write",
    arguments=WriteFD,
    describe=describe,
    explain=explain,
    run=run,
    failing=(
        {"fd": "fd:9", "data": "more"},
        {"fd": "fd:1", "data": "more"},
        {"data": "text", "eof": "yes"},
    ),
    failing_when_full=({"data": "more"},),
    shown={
        "fd_write": (
            {"data": "1. Read the log.\n"},
            {"data": "Dear all,\n", "eof": False},
        ),
    },
)
