r"""Long texts of a message, stored from where they stand.

A text of 100 MB as a str takes its size in memory once more, and four times with one emoji in it. So what is
longer than `LONG_BYTES` is read as a binary file.

>>> text = Text((Raw(b'"one\\n"'), Raw(b'"two"')))
>>> text.read(), text.open().read(4)
('one\n\ntwo', b'one\n')
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from io import RawIOBase
from typing import TYPE_CHECKING, BinaryIO, cast

import msgspec
from msgspec import Raw

from fdstore.hosts.gateway.json_parts import decoded, is_string
from fdstore.hosts.gateway.json_scan import stripped

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LONG_BYTES = 8 << 20
WINDOW_BYTES = 1 << 18


class Text(msgspec.Struct, frozen=True):
    """Values of a message as one text, joined by line feeds: strings, and others as their JSON came."""

    literals: tuple[Raw, ...]

    @property
    def size(self) -> int:
        """The bytes of its JSON."""
        return sum(map(len, self.literals))

    def pieces(self) -> Iterator[bytes]:
        """Yield the text in UTF-8. Raises `ValueError` for a string that is no text."""
        for number, literal in enumerate(self.literals):
            if number:
                yield b"\n"
            yield from decoded(literal) if is_string(literal) else _windows(literal)

    def joined(self) -> bytes:
        """Return the text in UTF-8. Raises `ValueError`."""
        return b"".join(self.pieces())

    def read(self) -> str:
        """Return the text. Raises `ValueError`."""
        return self.joined().decode()

    def open(self) -> BinaryIO:
        """Return the text as a binary file, in UTF-8, whose reading raises `ValueError`."""
        return cast(BinaryIO, _PiecesFile(self.pieces()))

    def to_store(self) -> str | BinaryIO:
        """Return what is stored: a text, or a file for a long one. Raises `ValueError`."""
        return self.open() if self.size > LONG_BYTES else self.read()


def _windows(value: Raw) -> Iterator[bytes]:
    view = stripped(memoryview(value))
    for start in range(0, len(view), WINDOW_BYTES):
        yield bytes(view[start : start + WINDOW_BYTES])


def chars_up_to(literal: Raw, limit: int) -> int:
    """Return the characters of a JSON string; of a longer one `limit` + 1. What is no text has none."""
    count = 0
    try:
        for piece in decoded(literal):
            count += len(piece.decode())
            if count > limit:
                return limit + 1
    except ValueError:
        return limit + 1 if len(literal) > limit else 0
    return count


def digest_of(literal: Raw) -> bytes:
    """Return what tells the text of a JSON string apart; b"" for what is no text."""
    digest = blake2b(digest_size=16)
    try:
        for piece in decoded(literal):
            digest.update(piece)
    except ValueError:
        return b""
    return digest.digest()


class _PiecesFile(RawIOBase):
    """A binary file of pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._ahead = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read up to the size of `buffer`. Raises `ValueError` for what is no text."""
        into = memoryview(buffer)
        while not self._ahead:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._ahead = memoryview(piece)
        size = min(len(into), len(self._ahead))
        into[:size] = self._ahead[:size]
        self._ahead = self._ahead[size:]
        return size
