"""Follow a content to its end: its text, or its bytes as they are (of text its UTF-8).

A follower's position is an offset, so it can resume from any client at any time. A program that reads bytes
need not know what it follows; of an open stream nothing tells it before the first piece.
"""

from __future__ import annotations

import time
from typing import Generic, Protocol, TypeVar

import msgspec

from fdstore.errors import Conflict, PositionOutOfRange, StoreLostData, StreamBroken
from fdstore.model.records import Descriptor
from fdstore.store.content_info import ContentGone, ContentInfo
from fdstore.store.contents.locating import WINDOW_BYTES, collect
from fdstore.store.contents.resolving import (
    content_info,
    explain_if_gone,
    reads_content,
    resolve,
    retry_if_gone,
)
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.streams.completion import BLOCK_S, wait_for_more
from fdstore.wire.operation import Operation

T = TypeVar("T", bound=str | bytes)
T_co = TypeVar("T_co", bound=str | bytes, covariant=True)


class Follower(Generic[T]):
    """Reads a content piece by piece until it has `ended`. Made by `follow_text` and `follow_bytes`."""

    def __init__(self, handle: ProcessHandle, fd: str, unit: _Unit[T], offset: int) -> None:
        self._handle = handle
        self._fd = fd
        self._unit = unit
        self._position = _Position(offset)
        self.ended = False

    def more(self, wait_s: float = BLOCK_S) -> Operation[T]:
        """Return the next piece: what is stored (at most about `WINDOW_BYTES`), or else what arrives within
        `wait_s`; empty if nothing does. Two round trips for what was just appended.

        Raises `StreamBroken` at the end of a broken stream, `PositionOutOfRange` for a position beyond the
        end of an ended one, `Conflict` if a name means another content by now, `NotFound`, and of text
        `NotText`.
        """
        until = time.monotonic() + wait_s
        run = explain_if_gone if self._position.content else retry_if_gone

        @reads_content
        def read(handle: ProcessHandle, fd: str) -> Operation[T]:
            return (yield from run(handle, fd, lambda: self._next(until)))

        return (yield from read(self._handle, self._fd))

    def _next(self, until: float) -> Operation[T]:
        unit, position = self._unit, self._position
        while True:
            located = None
            if position.page:
                info = yield from content_info(self._handle, self._fd)
            else:
                info, located = yield from unit.resolve(self._handle, self._fd, position.offset)
            if position.content not in ("", info.content):
                raise Conflict(self._fd, "other")
            unit.check(info)
            d, size = info.descriptor, unit.size(info.descriptor)
            if position.offset < size:
                if not position.page:
                    position = unit.locate(info, position.offset, located)
                return (yield from self._piece(info, position))
            if position.page and position.offset > size:
                raise StoreLostData(self._fd, f"it has {size} {unit.name}s, fewer than were read")
            if d.state != "open" and position.offset > size:
                raise PositionOutOfRange(self._fd, unit.name, position.offset + 1, size)
            if d.state == "broken":
                raise StreamBroken(self._fd, d.reason or "unknown")
            left = until - time.monotonic()
            if d.state == "sealed" or left <= 0:
                self.ended = d.state == "sealed"
                return unit.empty
            yield from wait_for_more(info, left)

    def _piece(self, info: ContentInfo, position: _Position) -> Operation[T]:
        unit, d = self._unit, info.descriptor
        # at least two pages: the first may hold nothing after the position
        window = max(2, WINDOW_BYTES * d.pages // max(d.bytes, 1))
        last = min(d.pages, position.page + window - 1)
        pages = yield from collect(info, range(position.page, last + 1))
        new, in_last = unit.cut(pages, position.offset - position.before)
        if not new:  # otherwise a follower would loop for ever
            raise ValueError(f"its pages have fewer than its {unit.size(d)} {unit.name}s")
        reached = position.offset + len(new)
        # the last page may still grow, so the next piece starts by reading it again
        self._position = _Position(reached, last, reached - in_last, info.content)
        self.ended = d.state == "sealed" and reached >= unit.size(d)
        return new


def follow_text(handle: ProcessHandle, fd: str, start: int = 1) -> Follower[str]:
    """Return a follower of a text, from the character `start` on."""
    return Follower(handle, fd, _Characters(), start - 1)


def follow_bytes(handle: ProcessHandle, fd: str, offset: int = 0) -> Follower[bytes]:
    """Return a follower of the bytes of a content, from byte `offset` (counted from 0) on."""
    return Follower(handle, fd, _Bytes(), offset)


class _Position(msgspec.Struct, frozen=True):
    """`offset` characters or bytes of `content` have been read. `page` holds the next one or ends just before
    it, and `before` come before that page. Page 0: not located yet."""

    offset: int
    page: int = 0
    before: int = 0
    content: str = ""


class _Unit(Protocol[T_co]):
    """The unit that a follower counts and returns."""

    @property
    def name(self) -> str: ...

    @property
    def empty(self) -> T_co: ...

    def size(self, d: Descriptor) -> int: ...

    def check(self, info: ContentInfo) -> None: ...

    def resolve(
        self, handle: ProcessHandle, fd: str, offset: int
    ) -> Operation[tuple[ContentInfo, bytes | None]]: ...

    def locate(self, info: ContentInfo, offset: int, located: bytes | None) -> _Position: ...

    def cut(self, pages: list[bytes], skip: int) -> tuple[T_co, int]:
        """Return what is in these pages after the first `skip`, and the size of the last page."""


class _Characters:
    name, empty = "character", ""

    def size(self, d: Descriptor) -> int:
        return d.chars

    def check(self, info: ContentInfo) -> None:
        info.require_text()

    def resolve(
        self, handle: ProcessHandle, fd: str, offset: int
    ) -> Operation[tuple[ContentInfo, bytes | None]]:
        return resolve(handle, fd, unit="chars", first=offset + 1, last=offset + 1)

    def locate(self, info: ContentInfo, offset: int, located: bytes | None) -> _Position:
        group = info.group_at("chars", offset + 1)
        if group is None:
            raise ContentGone(info.descriptor.fd)
        start = group.before(group.page_of_char(offset + 1))
        return _Position(offset, start.page, start.chars, info.content)

    def cut(self, pages: list[bytes], skip: int) -> tuple[str, int]:
        return b"".join(pages).decode("utf-8")[skip:], len(pages[-1].decode("utf-8"))


class _Bytes:
    name, empty = "byte", b""

    def size(self, d: Descriptor) -> int:
        return d.bytes

    def check(self, info: ContentInfo) -> None:
        pass

    def resolve(
        self, handle: ProcessHandle, fd: str, offset: int
    ) -> Operation[tuple[ContentInfo, bytes | None]]:
        return resolve(handle, fd, unit="bytes", first=offset, last=offset)

    def locate(self, info: ContentInfo, offset: int, located: bytes | None) -> _Position:
        d = info.descriptor
        if d.kind == "bytes":
            page = offset // d.page_size + 1
            return _Position(offset, page, (page - 1) * d.page_size, info.content)
        page, before, _ = map(int, (located or b"").split())
        return _Position(offset, page, before, info.content)

    def cut(self, pages: list[bytes], skip: int) -> tuple[bytes, int]:
        return b"".join(pages)[skip:], len(pages[-1])
