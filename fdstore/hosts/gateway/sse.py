r"""Events of a text/event-stream: split a stream into events, and replace the data of one.

An event is kept as the bytes that came, so that one which is not changed passes as it was. One of more than
`MAX_MESSAGE_BYTES` is not kept: an event with an error comes in its place.

>>> data_of(b"event: message\nid: 7\ndata: {}\n\n"), with_data(b"id: 7\ndata: {}\n\n", b"[]")
(b'{}', b'id: 7\ndata: []\n\n')
"""

from __future__ import annotations

import logging
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Raw

from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.json_texts import LONG_BYTES
from fdstore.hosts.gateway.messages import MAX_MESSAGE_BYTES, TOO_LONG, TooLong

log = logging.getLogger("fdstore.gateway")

_END = re.compile(rb"\r\n\r\n|\n\r\n|\n\n|\r\r(?!\n)")
_END_BYTES = 4


class EventSplitter:
    """Splits the chunks of a stream into events. `id` is that of the request whose answer the stream brings,
    if any: it stands in for the id of a message that is too long."""

    def __init__(self, id: Raw | None = None, limit: int = MAX_MESSAGE_BYTES) -> None:
        self._begun = bytearray()
        self._id, self._limit = id, limit
        self._is_first = True
        self._too_long: TooLong | None = None

    def feed(self, chunk: Buffer) -> Iterator[bytes | bytearray]:
        """Yield the events that end in this chunk, each with the empty line after it. A long one is handed
        over rather than copied."""
        searched = max(0, len(self._begun) - _END_BYTES)
        self._begun += chunk
        if self._is_first:
            if len(self._begun) < len(BOM_UTF8) and BOM_UTF8.startswith(self._begun):
                return
            self._is_first = False
            if self._begun.startswith(BOM_UTF8):
                del self._begun[: len(BOM_UTF8)]
            searched = 0
        start = 0
        while end := _END.search(self._begun, max(start, searched)):
            stop = end.end()
            if self._too_long is not None:
                self._too_long.add(memoryview(self._begun)[start : end.start()])
                yield from self._instead_of(self._too_long)
                self._too_long = None
                start = stop
            elif stop - start > self._limit:
                yield from self._instead_of(TooLong(memoryview(self._begun)[start:stop]))
                start = stop
            elif stop - start > LONG_BYTES:
                event, self._begun = self._begun, self._begun[stop:]
                del event[stop:]
                del event[:start]
                start = searched = 0
                yield event
                del event
            else:
                yield bytes(memoryview(self._begun)[start:stop])
                start = stop
        del self._begun[:start]
        if self._too_long is not None:
            self._too_long.add(memoryview(self._begun)[:-_END_BYTES])
            del self._begun[:-_END_BYTES]
        elif len(self._begun) > self._limit:
            self._too_long = TooLong(memoryview(self._begun)[:-_END_BYTES])
            del self._begun[:-_END_BYTES]

    def _instead_of(self, event: TooLong) -> Iterator[bytes]:
        """Yield what comes in the place of an event that is too long: its fields with an error as data."""
        begin = bytes(data_of(event.first) or b"")
        message = TooLong(begin)
        message.add(event.last)
        error = None if message.is_request else message.answer(self._id)
        if error is None:
            log.error("%s", TOO_LONG)
        else:
            yield with_data(event.first, error) + b"\n\n"

    def rest(self) -> bytes:
        """Return what followed the last event: a stream may end within one."""
        rest = bytes(self._begun)
        self._begun.clear()
        return rest


def field_of(event: Buffer, name: bytes) -> bytes | None:
    """Return the last value of a field of an event, such as b"id"; None if it has none."""
    values = [event[line.value : line.end] for line in _lines(event) if line.name == name]
    return bytes(values[-1]) if values else None


def data_of(event: Buffer) -> bytes | memoryview | None:
    """Return the data of an event; None if it has none, as a comment that keeps a connection alive. A long
    one is where it stands in the event."""
    view = memoryview(event)
    data = [view[line.value : line.end] for line in _lines(event) if line.name == b"data"]
    if len(data) == 1 and len(data[0]) > LONG_BYTES:
        return data[0]
    return b"\n".join(data) if data else None


def with_data(event: Buffer, data: Buffer) -> bytes:
    """Return an event with other data, which is one line, and its other fields as they were."""
    view = memoryview(event)
    pieces: list[Buffer] = []
    is_written = False
    for line in _lines(event):
        if line.name != b"data":
            pieces.append(view[line.start : line.next])
        elif not is_written:
            pieces += [b"data: ", data, view[line.end : line.next]]
            is_written = True
    return b"".join(pieces)


class _Line(NamedTuple):
    """A line of an event: its field, and where the line, the value, the line break and the next one begin."""

    name: bytes
    start: int
    value: int
    end: int
    next: int


def _lines(event: Buffer) -> Iterator[_Line]:
    event = bytes(event) if isinstance(event, memoryview) else event
    for start, end, next_start in _spans_of_lines(event):
        colon = event.find(b":", start, end)
        after = end if colon < 0 else colon
        value = min(end, after + (2 if event[after : after + 2] == b": " else 1))
        yield _Line(bytes(event[start:after]), start, value, end, next_start)


def _spans_of_lines(event: bytes | bytearray) -> Iterator[tuple[int, int, int]]:
    """Yield where each line begins and ends, and where the next begins. Each kind of line break is looked for
    once, as fast as memory is read."""
    places = dict.fromkeys((b"\n", b"\r"), -1)
    start = 0
    while start < len(event):
        for mark, place in places.items():
            if place < start:
                found = event.find(mark, start)
                places[mark] = found if found >= 0 else len(event)
        end = min(places.values())
        next_start = min(len(event), end + (2 if event[end : end + 2] == b"\r\n" else 1))
        yield start, end, next_start
        start = next_start
