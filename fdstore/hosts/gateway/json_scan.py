r"""Find the parts of JSON text of any size, depth and dialect, where they stand.

The text is looked through once, by windows, so the time is linear and the memory is that of one window. In a
window the escaped quotes are blanked; then each quote begins or ends a string, and strings are left out as
fast as memory is read. What is nested deeper than the parts that are looked for is only counted.

>>> text = b'["a, \\"b", {"c": [1, 2]}, NaN]'
>>> [text[begin:end] for begin, _, end in split(text).spans]
[b'"a, \\"b"', b' {"c": [1, 2]}', b' NaN']
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

WINDOW_BYTES = 1 << 16

MAX_PARTS = 100_000
"""The most members of an object, or items of an array, that are looked at: each takes many times the memory
of its text."""

BLANKS = b" \t\r\n"
COLON, COMMA = ord(":"), ord(",")
_OPENING, _CLOSING = frozenset(b"{["), frozenset(b"}]")

_STRING = re.compile(rb'"[^"]*"')
_MARK = re.compile(rb'"[^"]*"|[{\[]+|[}\]]+|[,:]')
_BLANK = re.compile(rb"[ \t\r\n]*")
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
MAX_PAIRED = 32
"""The depth to which pairs of brackets are counted together."""


class Split(NamedTuple):
    """The parts of an object or array.

    is_object   whether each part has a name: it is a pair of two texts then
    has_ended   whether the end is there, with nothing but blanks after it
    """

    is_object: bool
    spans: list[tuple[int, int, int]]
    has_ended: bool


def split(text: Buffer, window_bytes: int = WINDOW_BYTES) -> Split | None:
    """Return where the parts of an object or array begin and end, with the place of the colon of each; None
    for any other text, and for one with more than `MAX_PARTS`. Nothing but the structure is checked."""
    view = memoryview(text)
    opening = begin = colon = 0
    spans: list[tuple[int, int, int]] = []
    for at, mark in _marks(view, window_bytes):
        if mark in _OPENING:
            if not _is_blank(view[:at]):
                return None
            opening, begin = mark, at + 1
        elif mark == COLON:
            colon = colon or at
        else:
            is_end = mark in _CLOSING
            if spans or not is_end or not _is_blank(view[begin:at]):
                spans.append((begin, colon, at))
            if len(spans) > MAX_PARTS:
                return None
            if is_end:
                fits = mark == opening + 2  # the codes of { and }, of [ and ]
                return Split(opening == ord("{"), spans, fits and _is_blank(view[at + 1 :]))
            begin, colon = at + 1, 0
    return Split(opening == ord("{"), spans, False) if opening else None


def strings(text: Buffer, window_bytes: int = WINDOW_BYTES) -> Iterator[tuple[int, int]]:
    """Yield where each string begins and ends, with its quotes."""
    begun: int | None = None
    for start, window in _windows(memoryview(text), window_bytes):
        at = 0
        if begun is not None:
            at = window.find(b'"') + 1
            if at == 0:
                continue
            yield begun, start + at
            begun = None
        for found in _STRING.finditer(window, at):
            at = found.end()
            yield start + found.start(), start + at
        if (last := window.find(b'"', at)) >= 0:
            begun = start + last


def stripped(text: memoryview) -> memoryview:
    """Return a text without the blanks around it."""
    found = _BLANK.match(text)
    text = text[0 if found is None else found.end() :]
    while text and text[-1] in BLANKS:
        end = bytes(text[-WINDOW_BYTES:])
        text = text[: len(text) - len(end) + len(end.rstrip(BLANKS))]
    return text


def _is_blank(text: memoryview) -> bool:
    return not stripped(text)


def _windows(view: memoryview, window_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield the windows of a text, with where each begins. None ends within an escape, and in strings escaped
    quotes and backslashes are blanked."""
    start = 0
    while start < len(view):
        window = bytes(view[start : start + window_bytes])
        size = len(window)
        if b"\\" in window:
            if (size - len(window.rstrip(b"\\"))) % 2:
                window = bytes(view[start : start + size + 1])
                size = len(window)
            window = window.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
        yield start, window
        start += size


def _marks(view: memoryview, window_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield the brackets of the first object or array, and the commas and colons directly in it, with their
    places."""
    depth = 0
    is_inside = False  # of a string
    for start, window in _windows(view, window_bytes):
        at = 0
        if is_inside:
            at = window.find(b'"') + 1
            if at == 0:
                continue
        is_inside = window.count(b'"', at) % 2 == 1
        end = window.rfind(b'"') if is_inside else len(window)
        if depth > 1 and (change := _change_of(depth, window[at:end])) is not None:
            depth += change
            continue
        for found in _MARK.finditer(window, at, end):
            mark = window[found.start()]
            if mark in _OPENING:
                if depth == 0:
                    yield start + found.start(), mark
                depth += found.end() - found.start()
            elif mark in _CLOSING:
                count = found.end() - found.start()
                if count >= depth:
                    last = found.start() + max(0, depth - 1)
                    yield start + last, window[last]
                    return
                depth -= count
            elif depth == 1 and mark in (COMMA, COLON):
                yield start + found.start(), mark


def _change_of(depth: int, window: bytes) -> int | None:
    """Return how much deeper the end of a window of whole strings is than its begin; None if it may come back
    to the outermost object or array meanwhile, or is nested too deeply to be seen at once."""
    brackets = b"".join(window.split(b'"')[::2]).translate(_BRACKETS, _NO_BRACKETS)
    for _ in range(MAX_PAIRED):
        fewer = brackets.replace(b"[]", b"")
        if len(fewer) == len(brackets):
            break
        brackets = fewer
    closing = brackets.count(b"]")
    return None if depth - closing < 2 else len(brackets) - 2 * closing
