"""Read streams: wait until a part is complete, and follow a content to its end.

Readers of an open content block on its events. A wake-up is a hint: they read the content again, so a missed
one costs time but never text. Readers also detect an expired writer, because no other client may be
watching. A follower's position is a character offset, so it can resume from any client at any time. Bytes
are followed in `following_bytes`.
"""

from __future__ import annotations

import time

import msgspec

from fdstore.errors import (
    Conflict,
    InvalidArgument,
    PositionOutOfRange,
    StoreLostData,
    StreamBroken,
)
from fdstore.records import Descriptor, Slice
from fdstore.store.content_info import ContentGone, ContentInfo
from fdstore.store.contents.locating import WINDOW_BYTES, collect
from fdstore.store.contents.reading import read
from fdstore.store.contents.resolving import (
    content_info,
    explain_if_gone,
    reads_content,
    resolve,
    retry_if_gone,
)
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes.leases import check_held
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.selection import FIRST_PAGE, Part
from fdstore.wire.operation import Block, Operation

BLOCK_S = 5.0
"""How long a reader waits for a wake-up before it polls."""


def wait_for_more(view: ContentInfo, seconds: float, *other_events: str) -> Operation[None]:
    """Wait until an open content has grown since this view, or ended, or its writer's lease expires; at
    most `seconds`. An event in one of the streams `other_events` ends the wait as well."""
    pause = max(0.01, min(seconds, BLOCK_S, view.writer_left_s))
    d = view.descriptor
    seen = f"{d.bytes if d.kind == 'bytes' else d.chars}-1"
    events = view.keys.events
    streams = (events, *other_events, seen, *("0" for _ in other_events))
    yield Block(("XREAD", "BLOCK", max(1, int(pause * 1000)), "STREAMS", *streams), pause)


@reads_content
def wait_for_change(
    handle: ProcessHandle, fd: str, seen: Descriptor | None, wait_s: float
) -> Operation[Descriptor]:
    """Return a descriptor as soon as it differs from `seen` or is not open, or after `wait_s` seconds. Raises
    `NotFound`."""
    until = time.monotonic() + wait_s
    while True:
        view = yield from content_info(handle, fd)
        left = until - time.monotonic()
        if view.descriptor != seen or view.descriptor.state != "open" or left <= 0:
            return view.descriptor
        yield from wait_for_more(view, left)


def read_whole(
    handle: ProcessHandle, fd: str, part: Part | None, limit: int | None, wait_s: float
) -> Operation[Slice]:
    """As `reading.read`, after waiting up to `wait_s` seconds until the part is complete: no later text can
    change it. The whole content (None) is complete at its end."""
    if not check_wait(wait_s):
        return read(handle, fd, part, limit)
    return _read_when_whole(handle, fd, part, limit, wait_s)


def _read_when_whole(
    handle: ProcessHandle, fd: str, part: Part | None, limit: int | None, wait_s: float
) -> Operation[Slice]:
    yield from until_complete(handle, fd, part, wait_s)
    return (yield from read(handle, fd, part, limit))


@reads_content
def until_complete(handle: ProcessHandle, fd: str, part: Part | None, wait_s: float) -> Operation[None]:
    """Wait up to `wait_s` seconds until a part is complete. 0 does nothing. Raises `Fenced` when the process
    is cancelled, or claimed by another worker, while its attempt waits here."""
    if not check_wait(wait_s):
        return
    until = time.monotonic() + wait_s
    own_end = [handle.keys.events] if handle.attempt else []
    while True:
        view = yield from content_info(handle, fd)
        left = until - time.monotonic()
        if left <= 0 or _is_whole(view, part):
            return
        yield from wait_for_more(view, left, *own_end)
        if own_end:
            yield from check_held(handle)


def check_wait(wait_s: object) -> float:
    """Return a valid number of seconds to wait. Raises `InvalidArgument`."""
    if type(wait_s) is float and 0 <= wait_s <= MAX_INTEGER:
        return wait_s
    if isinstance(wait_s, bool) or not isinstance(wait_s, (int, float)) or not 0 <= wait_s <= MAX_INTEGER:
        raise InvalidArgument("wait", "a number of seconds, 0 or more, is needed")
    return float(wait_s)


def _is_whole(view: ContentInfo, part: Part | None) -> bool:
    d = view.descriptor
    if d.state != "open":
        return True
    if part is None:
        return False
    if d.kind == "bytes":
        # a read without a part may show an image, at its end; lines and later pages of bytes never come
        return part != FIRST_PAGE
    if part.mode == "page":
        return d.pages > part.last
    if part.mode == "char":
        return d.chars >= part.last
    ended = d.lines if (view.last_page or b"").endswith(b"\n") else d.lines - 1
    return ended >= part.last


class Position(msgspec.Struct, frozen=True):
    """The position of a follower: it has read `chars` characters of `content`. `page` holds the next
    character or ends just before it, and begins after `page_chars` characters. Page 0: not located yet."""

    chars: int
    page: int = 0
    page_chars: int = 0
    content: str = ""


class Piece(msgspec.Struct, frozen=True):
    """One piece of followed text (empty if the wait timed out), and whether it was the last."""

    text: str
    position: Position
    ended: bool


class Follower:
    """Reads a content piece by piece, from character `start` on, until it has `ended`."""

    def __init__(self, handle: ProcessHandle, fd: str, start: int = 1) -> None:
        self._handle = handle
        self._fd = fd
        self._position = Position(start - 1)
        self.ended = False

    def more(self, wait_s: float = BLOCK_S) -> Operation[str]:
        """Return the next piece, empty if none arrives within `wait_s`. Raises as `follow`."""
        piece = yield from follow(self._handle, self._fd, self._position, wait_s)
        self._position, self.ended = piece.position, piece.ended
        return piece.text


@reads_content
def follow(handle: ProcessHandle, fd: str, position: Position, wait_s: float = BLOCK_S) -> Operation[Piece]:
    """Return the text after a position: stored text (at most about `WINDOW_BYTES`), or else text that
    arrives within `wait_s`. Two round trips for text that was just appended.

    Raises `StreamBroken` at the end of a broken stream, `PositionOutOfRange` for a position beyond the end
    of an ended one, `Conflict` if a name means another content by now, `NotFound`.
    """
    until = time.monotonic() + wait_s
    run = explain_if_gone if position.content else retry_if_gone
    return (yield from run(handle, fd, lambda: _follow(handle, fd, position, until)))


def _follow(handle: ProcessHandle, fd: str, position: Position, until: float) -> Operation[Piece]:
    next_char = position.chars + 1
    while True:
        if position.page:
            view = yield from content_info(handle, fd)
        else:
            view, _ = yield from resolve(handle, fd, unit="chars", first=next_char, last=next_char)
        if position.content not in ("", view.content):
            raise Conflict(fd, "other")
        view.require_text()
        d = view.descriptor
        if next_char <= d.chars:
            return (yield from _piece(view, position if position.page else _locate(view, next_char)))
        if position.page and position.chars > d.chars:
            raise StoreLostData(fd, f"it has {d.chars} characters, fewer than were read")
        if d.state != "open" and position.chars > d.chars:
            raise PositionOutOfRange(fd, "character", next_char, d.chars)
        if d.state == "broken":
            raise StreamBroken(fd, d.reason or "unknown")
        left = until - time.monotonic()
        if d.state == "sealed" or left <= 0:
            return Piece("", position, d.state == "sealed")
        yield from wait_for_more(view, left)


def _locate(view: ContentInfo, char: int) -> Position:
    group = view.group_at("chars", char)
    if group is None:
        raise ContentGone(view.descriptor.fd)
    start = group.before(group.page_of_char(char))
    return Position(char - 1, start.page, start.chars, view.content)


def _piece(view: ContentInfo, position: Position) -> Operation[Piece]:
    d = view.descriptor
    # at least two pages: the first may hold nothing after the position
    window = max(2, WINDOW_BYTES * d.pages // max(d.bytes, 1))
    last = min(d.pages, position.page + window - 1)
    pages = yield from collect(view, range(position.page, last + 1))
    new = b"".join(pages).decode("utf-8")[position.chars - position.page_chars :]
    if not new:  # otherwise a follower would loop for ever
        raise ValueError(f"its pages have fewer than its {d.chars} characters")
    reached = position.chars + len(new)
    # the last page may still grow, so the next piece starts by reading it again
    after = Position(reached, last, reached - len(pages[-1].decode("utf-8")), view.content)
    return Piece(new, after, d.state == "sealed" and reached >= d.chars)
