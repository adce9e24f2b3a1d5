"""Follow the bytes of a content to its end: of bytes as they are, of text its UTF-8.

As `following`, with byte offsets as positions. So a program that reads bytes need not know what it follows;
of an open stream nothing tells it before the first piece.
"""

from __future__ import annotations

import time

import msgspec

from fdstore.errors import Conflict, PositionOutOfRange, StoreLostData, StreamBroken
from fdstore.store.content_info import ContentInfo
from fdstore.store.contents.locating import WINDOW_BYTES, collect
from fdstore.store.contents.resolving import (
    content_info,
    explain_if_gone,
    reads_content,
    resolve,
    retry_if_gone,
)
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.streams.following import BLOCK_S, wait_for_more
from fdstore.wire.operation import Operation


class BytePosition(msgspec.Struct, frozen=True):
    """The position of a follower: it has read `bytes` bytes of `content`. `page` holds the next byte or ends
    just before it, and begins after `page_bytes` bytes. Page 0: not located yet."""

    bytes: int
    page: int = 0
    page_bytes: int = 0
    content: str = ""


class BytePiece(msgspec.Struct, frozen=True):
    """One piece of followed bytes (empty if the wait timed out), and whether it was the last."""

    data: bytes
    position: BytePosition
    ended: bool


class ByteFollower:
    """Reads a content piece by piece, from byte `offset` (counted from 0) on, until it has `ended`."""

    def __init__(self, handle: ProcessHandle, fd: str, offset: int = 0) -> None:
        self._handle = handle
        self._fd = fd
        self._position = BytePosition(offset)
        self.ended = False

    def more(self, wait_s: float = BLOCK_S) -> Operation[bytes]:
        """Return the next piece, empty if none arrives within `wait_s`. Raises as `follow_bytes`."""
        piece = yield from follow_bytes(self._handle, self._fd, self._position, wait_s)
        self._position, self.ended = piece.position, piece.ended
        return piece.data


@reads_content
def follow_bytes(
    handle: ProcessHandle, fd: str, position: BytePosition, wait_s: float = BLOCK_S
) -> Operation[BytePiece]:
    """Return the bytes after a position: stored ones (at most about `WINDOW_BYTES`), or else those that
    arrive within `wait_s`. Two round trips for bytes that were just appended.

    Raises `StreamBroken` at the end of a broken stream, `PositionOutOfRange` for a position beyond the end
    of an ended one, `Conflict` if a name means another content by now, `NotFound`.
    """
    until = time.monotonic() + wait_s
    run = explain_if_gone if position.content else retry_if_gone
    return (yield from run(handle, fd, lambda: _follow(handle, fd, position, until)))


def _follow(handle: ProcessHandle, fd: str, position: BytePosition, until: float) -> Operation[BytePiece]:
    read = position.bytes
    while True:
        located = None
        if position.page:
            view = yield from content_info(handle, fd)
        else:
            view, located = yield from resolve(handle, fd, unit="bytes", first=read, last=read)
        if position.content not in ("", view.content):
            raise Conflict(fd, "other")
        d = view.descriptor
        if read < d.bytes:
            return (yield from _piece(view, position if position.page else _locate(view, read, located)))
        if position.page and read > d.bytes:
            raise StoreLostData(fd, f"it has {d.bytes} bytes, fewer than were read")
        if d.state != "open" and read > d.bytes:
            raise PositionOutOfRange(fd, "byte", read + 1, d.bytes)
        if d.state == "broken":
            raise StreamBroken(fd, d.reason or "unknown")
        left = until - time.monotonic()
        if d.state == "sealed" or left <= 0:
            return BytePiece(b"", position, d.state == "sealed")
        yield from wait_for_more(view, left)


def _locate(view: ContentInfo, read: int, located: bytes | None) -> BytePosition:
    d = view.descriptor
    if d.kind == "bytes":
        page = read // d.page_size + 1
        return BytePosition(read, page, (page - 1) * d.page_size, view.content)
    page, before, _ = map(int, (located or b"").split())
    return BytePosition(read, page, before, view.content)


def _piece(view: ContentInfo, position: BytePosition) -> Operation[BytePiece]:
    d = view.descriptor
    # at least two pages: the first may hold nothing after the position
    window = max(2, WINDOW_BYTES * d.pages // max(d.bytes, 1))
    last = min(d.pages, position.page + window - 1)
    pages = yield from collect(view, range(position.page, last + 1))
    new = b"".join(pages)[position.bytes - position.page_bytes :]
    if not new:  # otherwise a follower would loop for ever
        raise ValueError(f"its pages have fewer than its {d.bytes} bytes")
    reached = position.bytes + len(new)
    # the last page may still grow, so the next piece starts by reading it again
    after = BytePosition(reached, last, reached - len(pages[-1]), view.content)
    return BytePiece(new, after, d.state == "sealed" and reached >= d.bytes)
