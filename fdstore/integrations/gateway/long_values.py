r"""Long values of a JSON message, set aside: what is left is short, and they are read by windows.

A message of 100 MB is mostly one value. Decoding it whole takes its size in memory once more, four times with
emoji, twenty times as values of Python, and no other thread runs meanwhile. So a string of more than
`LONG_BYTES`, and a `structuredContent` that is still longer without its long strings, is replaced by a token,
an ordinary short string; the message is decided on without it, and it is stored from where it stands.

>>> message = Message.of(b'{"id": 1, "text": "' + b"x\\n" * LONG_BYTES + b'"}')
>>> len(message.text) < 100, [value.open().read(4) for value in message.long_values.values()]
(True, [b'x\nx\n'])
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from io import BytesIO, RawIOBase
from secrets import token_hex
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, cast

import msgspec

from fdstore.text.layout import MAX_NESTING
from fdstore.text.surrogates import show_lone_surrogates

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Buffer: TypeAlias = bytes | bytearray | memoryview

LONG_BYTES = 8 << 20
WINDOW_BYTES = 1 << 18
"""The bytes that are looked at in one call: other threads run between two calls."""
QUOTE = ord('"')
BACKSLASH = ord("\\")

_SHORT_STRINGS = re.compile(rb'(?:[^"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]]', re.DOTALL)
_NO_BRACKETS = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")++', re.DOTALL)
_STRUCTURED = re.compile(rb'"structuredContent"[ \t\n\r]*+:[ \t\n\r]*+[{\[]')
_MAX_KEY_BYTES = 64
_INSIDE = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_WHOLE_UNITS = re.compile(
    rb"(?:[^\\]++|\\[^u]|\\u(?![dD][89abAB])....|\\u[dD][89abAB]..(?:\\u[dD][c-fC-F]..|(?=.{6})))*+",
    re.DOTALL,
)


class Message(msgspec.Struct, frozen=True):
    """A message: `whole` as it came, and its `text` with tokens in place of the `long_values`."""

    whole: Buffer
    text: Buffer
    long_values: dict[str, LongValue]

    @classmethod
    def of(cls, whole: Buffer, long_bytes: int = LONG_BYTES, window: int = WINDOW_BYTES) -> Message:
        """Return a message. Of one that is not JSON anything may be set aside; `whole` is as it was."""
        if len(whole) <= long_bytes:
            return cls(whole, bytes(whole), {})
        prefix = f"set-aside-{token_hex(8)}"
        long_values: dict[str, LongValue] = {}
        text: Buffer = whole
        for find, kind in ((_long_strings, LongString), (_long_structured, LongJson)):
            pieces: list[Buffer] = []
            kept = 0
            searched = memoryview(text)
            for start, end in find(searched, long_bytes, window):
                json = searched[start:end]
                token = f"{prefix}-{blake2b(json, digest_size=16).hexdigest()}"
                long_values[token] = kind(json)
                pieces += [searched[kept:start], f'"{token}"'.encode()]
                kept = end
            if pieces:
                text = b"".join([*pieces, searched[kept:]])
        return cls(whole, text, long_values)

    def restored(self, text: Buffer) -> Buffer:
        """Return a text made of this one with the long values that are still in it."""
        pieces: list[Buffer] = []
        end = 0
        for found in self._tokens_in(text):
            value = self.long_values[found[1].decode()]
            pieces += [text[end : found.start()], self._json_of(value)]
            end = found.end()
        return b"".join([*pieces, text[end:]]) if pieces else text

    def to_store(self, text: str) -> str | BinaryIO:
        """Return a text of this message to store: one with long values in it as a binary file."""
        if value := self.long_values.get(text):
            json = self._json_of(value)
            return cast(BinaryIO, value.open()) if json is value.json else BytesIO(json)
        if any(token in text for token in self.long_values):
            return BytesIO(self.restored(text.encode()))
        return text

    def _json_of(self, value: LongValue) -> Buffer:
        """Return the JSON of a value as it came: strings within it may have been set aside before."""
        return self.restored(value.json) if isinstance(value, LongJson) else value.json

    def _tokens_in(self, text: Buffer) -> Iterator[re.Match[bytes]]:
        if not self.long_values:
            return iter(())
        return re.finditer(b'"(' + b"|".join(token.encode() for token in self.long_values) + b')"', text)


class LongString(msgspec.Struct, frozen=True):
    """A JSON string, with its quotes."""

    json: memoryview

    def open(self) -> RawIOBase:
        """Return the text as a binary file, in UTF-8."""
        return StringReader(self.json[1:-1])


class LongJson(msgspec.Struct, frozen=True):
    """A JSON object or array."""

    json: memoryview

    def open(self) -> RawIOBase:
        """Return the JSON as a binary file."""
        return WindowReader(self.json)


LongValue: TypeAlias = LongString | LongJson


class WindowReader(RawIOBase):
    """A part of a message as a file, read by windows."""

    def __init__(self, part: memoryview, window: int = WINDOW_BYTES) -> None:
        self._part, self._window = part, window
        self._position = 0
        self._ahead = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read up to the size of `buffer`. Raises `ValueError` for an invalid JSON string."""
        into = memoryview(buffer)
        if not self._ahead and self._position < len(self._part):
            self._ahead = memoryview(self._next_window())
        size = min(len(into), len(self._ahead))
        into[:size] = self._ahead[:size]
        self._ahead = self._ahead[size:]
        return size

    def _next_window(self) -> Buffer:
        start, self._position = self._position, self._position + self._window
        return self._part[start : self._position]


class StringReader(WindowReader):
    """The text between the quotes of a JSON string, decoded as it is read."""

    def _next_window(self) -> bytes:
        """Decode as many whole characters and escapes as one window holds."""
        start, end = self._position, self._position + self._window
        if end < len(self._part):
            found = _WHOLE_UNITS.match(self._part, start, end)
            end = found.end() if found else start
            while end > start and self._part[end] & 0xC0 == 0x80:  # within a character
                end -= 1
            if end == start:
                raise ValueError("an escape of this JSON string has no end")
        else:
            end = len(self._part)
        self._position = end
        return _decoded(bytes(self._part[start:end]))


def _decoded(literal: bytes) -> bytes:
    if b"\\" not in literal:
        literal.decode()  # raises for what is not UTF-8
        return literal
    quoted = b'"' + literal + b'"'
    try:
        return msgspec.json.decode(quoted, type=str).encode()
    except msgspec.DecodeError:
        return msgspec.json.decode(show_lone_surrogates(quoted), type=str).encode()


def _long_strings(whole: memoryview, long_bytes: int, window: int) -> Iterator[tuple[int, int]]:
    """Yield where the long strings begin and end, with their quotes."""
    position = 0
    while position < len(whole):
        found = _SHORT_STRINGS.match(whole, position, position + window)
        start = (found.end() if found else position) + 1
        if start > min(position + window, len(whole)):
            position = start - 1
            continue
        position = _end_of_string(whole, start, window) + 1
        if position - start > long_bytes and position <= len(whole):
            yield start - 1, position


def _long_structured(text: memoryview, long_bytes: int, window: int) -> Iterator[tuple[int, int]]:
    """Yield where the long objects and arrays named `structuredContent` begin and end."""
    position = 0
    while position + long_bytes < len(text):
        reached = position + window
        found = _STRUCTURED.search(text, position, reached + _MAX_KEY_BYTES)
        if found is None:
            position = reached
            continue
        position = found.end()
        # behind a backslash it is the end of another name
        if text[found.start() - 1] == BACKSLASH:
            continue
        end = _end_of_container(text, position - 1, window)
        if end - position > long_bytes and end <= len(text):
            yield position - 1, end
            position = end


def _end_of_container(text: memoryview, start: int, window: int) -> int:
    """Return where the object or array ends that begins at `start`; one more than the text has for one
    without an end."""
    depth, position = 1, start + 1
    while position < len(text):
        found = _SHORT_STRINGS.match(text, position, position + window)
        end = found.end() if found else position
        if end == position:  # a string that is longer than a window
            position = _end_of_string(text, position + 1, window) + 1
            continue
        rest = _unpaired(_NO_BRACKETS.sub(b"", bytes(text[position:end])))
        closing = rest.count(b"}") + rest.count(b"]")
        if closing < depth:
            depth += len(rest) - 2 * closing
            position = end
            continue
        for bracket in _STRING_OR_BRACKET.finditer(text, position, end):
            depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(bracket[0], 0)
            if depth == 0:
                return bracket.end()
        position = end
    return len(text) + 1


def _unpaired(brackets: bytes) -> bytes:
    """Return the brackets without those that end within the text; some remain if they are nested deeply."""
    for _ in range(MAX_NESTING):
        shorter = brackets.replace(b"{}", b"").replace(b"[]", b"")
        if len(shorter) == len(brackets):
            break
        brackets = shorter
    return brackets


def _end_of_string(whole: memoryview, start: int, window: int) -> int:
    """Return where the quote is that ends the string from `start` on, or the end of a text without one."""
    while True:
        found = _INSIDE.match(whole, start, start + window)
        reached = found.end() if found else start
        if reached == start:
            return start if start < len(whole) and whole[start] == QUOTE else len(whole)
        start = reached
