"""Wait for streams: until a part is complete, or until anything has changed.

Readers of an open content block on its events. A wake-up is a hint: they read the content again, so a missed
one costs time but never text. Readers also detect an expired writer, because no other client may be
watching.
"""

from __future__ import annotations

import time

from fdstore.errors import InvalidArgument
from fdstore.model.records import Descriptor, Slice
from fdstore.store.content_info import ContentInfo
from fdstore.store.contents.reading import read
from fdstore.store.contents.resolving import content_info, reads_content
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes.leases import check_held
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.selection import FIRST_PAGE, AnyPart, JsonValue
from fdstore.wire.operation import Block, Operation

BLOCK_S = 5.0
"""The time that a reader waits for a wake-up before it polls."""


def wait_for_more(info: ContentInfo, seconds: float, *other_events: str) -> Operation[None]:
    """Wait until an open content has grown since `info`, or ended, or its writer's lease expires; at
    most `seconds`. An event in one of the streams `other_events` ends the wait as well."""
    pause = max(0.01, min(seconds, BLOCK_S, info.writer_left_s))
    d = info.descriptor
    seen = f"{d.bytes if d.kind == 'bytes' else d.chars}-1"
    events = info.keys.events
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
        info = yield from content_info(handle, fd)
        left = until - time.monotonic()
        if info.descriptor != seen or info.descriptor.state != "open" or left <= 0:
            return info.descriptor
        yield from wait_for_more(info, left)


def read_whole(
    handle: ProcessHandle, fd: str, part: AnyPart | None, limit: int | None, wait_s: float
) -> Operation[Slice]:
    """As `reading.read`, after waiting up to `wait_s` seconds until the part is complete: no later text can
    change it. The whole content (None) is complete at its end."""
    if not check_wait(wait_s):
        return read(handle, fd, part, limit)
    return _read_when_whole(handle, fd, part, limit, wait_s)


def _read_when_whole(
    handle: ProcessHandle, fd: str, part: AnyPart | None, limit: int | None, wait_s: float
) -> Operation[Slice]:
    yield from until_complete(handle, fd, part, wait_s)
    return (yield from read(handle, fd, part, limit))


@reads_content
def until_complete(handle: ProcessHandle, fd: str, part: AnyPart | None, wait_s: float) -> Operation[None]:
    """Wait up to `wait_s` seconds until a part is complete. 0 does nothing. Raises `Fenced` when the process
    is cancelled, or claimed by another worker, while its attempt waits here."""
    if not check_wait(wait_s):
        return
    until = time.monotonic() + wait_s
    own_end = [handle.keys.events] if handle.attempt else []
    while True:
        info = yield from content_info(handle, fd)
        left = until - time.monotonic()
        if left <= 0 or _is_whole(info, part):
            return
        yield from wait_for_more(info, left, *own_end)
        if own_end:
            yield from check_held(handle)


def check_wait(wait_s: object) -> float:
    """Return a valid number of seconds to wait. Raises `InvalidArgument`."""
    if type(wait_s) is float and 0 <= wait_s <= MAX_INTEGER:
        return wait_s
    if isinstance(wait_s, bool) or not isinstance(wait_s, (int, float)) or not 0 <= wait_s <= MAX_INTEGER:
        raise InvalidArgument("wait", "a number of seconds, 0 or more, is needed")
    return float(wait_s)


def _is_whole(info: ContentInfo, part: AnyPart | None) -> bool:
    d = info.descriptor
    if d.state != "open":
        return True
    if part is None or isinstance(part, JsonValue):
        return False
    if d.kind == "bytes":
        # a read without a part may show an image, at its end; lines and later pages of bytes never come
        return part != FIRST_PAGE
    if part.mode == "page":
        return d.pages > part.last
    if part.mode == "char":
        return d.chars >= part.last
    ended = d.lines if (info.last_page or b"").endswith(b"\n") else d.lines - 1
    return ended >= part.last
