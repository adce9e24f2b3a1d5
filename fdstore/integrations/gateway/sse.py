r"""Events of a text/event-stream: split a stream into events, and replace the data of one.

An event is kept as the bytes that came, so that one which is not changed passes as it was.

>>> data_of(b"event: message\nid: 7\ndata: {}\n\n"), with_data(b"id: 7\ndata: {}\n\n", b"[]")
(b'{}', b'id: 7\ndata: []\n\n')
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_END = re.compile(rb"\r\n\r\n|\n\r\n|\n\n|\r\r(?!\n)")
_END_BYTES = 4
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|\Z)")


class EventSplitter:
    """Splits the chunks of a stream into events."""

    def __init__(self) -> None:
        self._begun = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the events that end in this chunk, each with the empty line after it."""
        searched = max(0, len(self._begun) - _END_BYTES)
        self._begun += chunk
        start = 0
        while end := _END.search(self._begun, max(start, searched)):
            yield bytes(self._begun[start : end.end()])
            start = end.end()
        del self._begun[:start]

    def rest(self) -> bytes:
        """Return what followed the last event: a stream may end within one."""
        rest = bytes(self._begun)
        self._begun.clear()
        return rest


def field_of(event: bytes, name: bytes) -> bytes | None:
    """Return the last value of a field of an event, such as b"id"; None if it has none."""
    values = [value for each, value in _fields(event) if each == name]
    return values[-1] if values else None


def data_of(event: bytes) -> bytes | None:
    """Return the data of an event; None if it has none, as a comment that keeps a connection alive."""
    data = [value for name, value in _fields(event) if name == b"data"]
    return b"\n".join(data) if data else None


def with_data(event: bytes, data: bytes) -> bytes:
    """Return an event with other data, which is one line, and its other fields as they were."""
    lines: list[bytes] = []
    is_written = False
    for line in _LINE.findall(event):
        text = line.rstrip(b"\r\n")
        if text.partition(b":")[0] != b"data":
            lines.append(line)
        elif not is_written:
            lines.append(b"data: " + data + line[len(text) :])
            is_written = True
    return b"".join(lines)


def _fields(event: bytes) -> Iterator[tuple[bytes, bytes]]:
    for line in _LINE.findall(event):
        name, colon, value = line.rstrip(b"\r\n").partition(b":")
        if name:
            yield name, value.removeprefix(b" ") if colon else b""
