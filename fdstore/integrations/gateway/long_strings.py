r"""Long strings of a JSON message, set aside: what is left is short, and they are read by windows.

A message of 100 MB is mostly one string. Decoding it whole takes its size in memory once more, or four times
with emoji, and no other thread runs meanwhile. So a string of more than `LONG_BYTES` is replaced by a token,
an ordinary short string; the message is decided on without it, and it is stored from where it stands.

>>> message = Message.of(b'{"id": 1, "text": "' + b"x\\n" * LONG_BYTES + b'"}')
>>> len(message.text) < 100, [string.open().read(4) for string in message.strings.values()]
(True, [b'x\nx\n'])
"""

from __future__ import annotations

import re
from hashlib import blake2b
from io import BytesIO, RawIOBase
from secrets import token_hex
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, cast

import msgspec

from fdstore.text.json_surrogates import show_lone_surrogates

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Buffer: TypeAlias = bytes | bytearray | memoryview

LONG_BYTES = 8 << 20
WINDOW_BYTES = 1 << 18
"""How much is looked at in one call: other threads run between two of them."""
QUOTE = ord('"')

_SHORT_STRINGS = re.compile(rb'(?:[^"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_INSIDE = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_WHOLE_UNITS = re.compile(
    rb"(?:[^\\]++|\\[^u]|\\u(?![dD][89abAB])....|\\u[dD][89abAB]..(?:\\u[dD][c-fC-F]..|(?=.{6})))*+",
    re.DOTALL,
)


class Message(msgspec.Struct, frozen=True):
    """A message: `whole` as it came, and its `text` with tokens in place of the long `strings`."""

    whole: Buffer
    text: Buffer
    strings: dict[str, LongString]

    @classmethod
    def of(cls, whole: Buffer, long_bytes: int = LONG_BYTES, window: int = WINDOW_BYTES) -> Message:
        """Return a message. Of one that is not JSON anything may be set aside; `whole` is as it was."""
        if len(whole) <= long_bytes:
            return cls(whole, bytes(whole), {})
        return cls(whole, *_set_aside(memoryview(whole), long_bytes, window))

    def restored(self, text: Buffer) -> Buffer:
        """Return a text made of this one with the long strings that are still in it."""
        pieces: list[Buffer] = []
        end = 0
        for found in re.finditer(b'"(' + self._tokens() + b')"', text) if self.strings else ():
            pieces += [text[end : found.start() + 1], self.strings[found[1].decode()].literal]
            end = found.end() - 1
        return b"".join([*pieces, text[end:]]) if pieces else text

    def to_store(self, text: str) -> str | BinaryIO:
        """Return a text of this message to store: one with long strings in it as a binary file."""
        if text in self.strings:
            return cast(BinaryIO, self.strings[text].open())
        if any(token in text for token in self.strings):
            return BytesIO(self.restored(text.encode()))
        return text

    def _tokens(self) -> bytes:
        return b"|".join(token.encode() for token in self.strings)


class LongString(msgspec.Struct, frozen=True):
    """A JSON string: its `literal`, which is what stands between the quotes."""

    literal: memoryview

    def open(self) -> StringReader:
        """Return the text as a binary file, in UTF-8."""
        return StringReader(self.literal)


class StringReader(RawIOBase):
    """The text of a JSON string as a file, decoded as it is read."""

    def __init__(self, literal: memoryview, window: int = WINDOW_BYTES) -> None:
        self._literal, self._window = literal, window
        self._position = 0
        self._ahead = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read up to the size of `buffer`. Raises `ValueError` if the literal is not valid JSON."""
        into = memoryview(buffer)
        if not self._ahead and self._position < len(self._literal):
            self._ahead = memoryview(self._next_window())
        size = min(len(into), len(self._ahead))
        into[:size] = self._ahead[:size]
        self._ahead = self._ahead[size:]
        return size

    def _next_window(self) -> bytes:
        """Decode as many whole characters and escapes as one window holds."""
        start, end = self._position, self._position + self._window
        if end < len(self._literal):
            found = _WHOLE_UNITS.match(self._literal, start, end)
            end = found.end() if found else start
            while end > start and self._literal[end] & 0xC0 == 0x80:  # within a character
                end -= 1
            if end == start:
                raise ValueError("an escape of this JSON string has no end")
        else:
            end = len(self._literal)
        self._position = end
        return _decoded(bytes(self._literal[start:end]))


def _decoded(literal: bytes) -> bytes:
    if b"\\" not in literal:
        literal.decode()  # raises for what is not UTF-8
        return literal
    quoted = b'"' + literal + b'"'
    try:
        return msgspec.json.decode(quoted, type=str).encode()
    except msgspec.DecodeError:
        return msgspec.json.decode(show_lone_surrogates(quoted), type=str).encode()


def _set_aside(whole: memoryview, long_bytes: int, window: int) -> tuple[Buffer, dict[str, LongString]]:
    """Return a JSON text with tokens in place of its long strings, and these. Equal ones have one token."""
    prefix = f"set-aside-{token_hex(8)}"
    strings: dict[str, LongString] = {}
    pieces: list[memoryview | bytes] = []
    kept = position = 0
    while position < len(whole):
        found = _SHORT_STRINGS.match(whole, position, position + window)
        start = (found.end() if found else position) + 1
        if start > min(position + window, len(whole)):
            position = start - 1
            continue
        position = _end_of_string(whole, start, window) + 1
        if position - start > long_bytes and position <= len(whole):
            literal = whole[start : position - 1]
            token = f"{prefix}-{blake2b(literal, digest_size=16).hexdigest()}"
            strings[token] = LongString(literal)
            pieces += [whole[kept:start], token.encode()]
            kept = position - 1
    return (b"".join([*pieces, whole[kept:]]) if strings else whole), strings


def _end_of_string(whole: memoryview, start: int, window: int) -> int:
    """Return where the quote is that ends the string from `start` on, or the end of a text without one."""
    while True:
        found = _INSIDE.match(whole, start, start + window)
        reached = found.end() if found else start
        if reached == start:
            return start if start < len(whole) and whole[start] == QUOTE else len(whole)
        start = reached
