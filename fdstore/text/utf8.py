"""Decode a stream of bytes to text, without losing any byte; or decide that it is not text.

Programs write any bytes, and pipes split them anywhere. An incomplete character is held back until the next
piece; a byte that is not UTF-8 becomes the four characters `\\xNN`.
"""

from __future__ import annotations

from codecs import getincrementaldecoder, utf_8_decode
from typing import Literal

HEAD_BYTES = 65_536
"""The number of first bytes that decide whether a stream is text or bytes."""

_ESCAPED = len("\\xNN")


def is_utf8(data: bytes, *, complete: bool = True) -> bool:
    r"""Return whether these bytes are UTF-8. Unless they are `complete`, the last character may be cut.

    >>> is_utf8(b"caf\xc3", complete=False), is_utf8(b"caf\xc3"), is_utf8(b"\x89PNG")
    (True, False, False)
    """
    try:
        utf_8_decode(data, "strict", complete)
    except UnicodeDecodeError:
        return False
    return True


class Utf8Check:
    r"""Checks whether a stream of bytes is UTF-8.

    >>> check = Utf8Check()
    >>> check.feed(b"caf\xc3"), check.ended()
    (None, False)
    """

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("strict")
        self._is_utf8 = True

    def feed(self, piece: bytes) -> None:
        """Add a piece."""
        if self._is_utf8:
            try:
                self._decoder.decode(piece)
            except UnicodeDecodeError:
                self._is_utf8 = False

    def ended(self) -> bool:
        """Return whether all of it was UTF-8."""
        return self._is_utf8 and not self._decoder.getstate()[0]


class Utf8Text:
    r"""Decodes one stream of bytes. `replaced` counts the bytes so far that were not UTF-8.

    >>> stream = Utf8Text()
    >>> stream.feed(b"caf\xc3"), stream.feed(b"\xa9 \xff"), stream.end(), stream.replaced
    ('caf', 'é \\xff', '', 1)
    """

    def __init__(self) -> None:
        self._cut = b""
        self.replaced = 0

    def feed(self, piece: bytes) -> str:
        """Add a piece. Return the text that is complete with it; up to 3 bytes are held back."""
        return self._decode(self._cut + piece if self._cut else piece, final=False)

    def end(self) -> str:
        """End the stream. Return the bytes of an incomplete character, escaped."""
        return self._decode(self._cut, final=True)

    def _decode(self, data: bytes, *, final: bool) -> str:
        text, used = utf_8_decode(data, "backslashreplace", final)
        self._cut = data[used:]
        # a valid byte keeps its length, an invalid one becomes four
        self.replaced += (len(text.encode("utf-8")) - used) // (_ESCAPED - 1)
        return text


class TextOrBytes:
    r"""Passes one stream of bytes on as text if its first 64 KB are UTF-8 (all, if it ends sooner), else as
    bytes. Until that is decided it holds them back. What began as text stays text, decoded as by
    `Utf8Text`.

    >>> stream, other = TextOrBytes(), TextOrBytes()
    >>> stream.feed(b"caf\xc3"), stream.feed(b"\xa9"), stream.end()
    ('', '', 'café')
    >>> other.feed(b"PK"), other.feed(b"\xff\xfe"), other.feed(b"more"), other.end()
    ('', b'PK\xff\xfe', b'more', '')
    """

    def __init__(self) -> None:
        self.kind: Literal["text", "bytes"] | None = None
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._checker = getincrementaldecoder("utf-8")("strict")
        self._text = Utf8Text()

    @property
    def replaced(self) -> int:
        """The number of bytes so far that were not UTF-8, in text."""
        return self._text.replaced

    def feed(self, piece: bytes) -> str | bytes:
        """Add a piece. Return what can be passed on: all of one stream is either text or bytes."""
        if self.kind == "text":
            return self._text.feed(piece)
        if self.kind == "bytes":
            return piece
        head = piece[: HEAD_BYTES - self._held_bytes]
        self._held.append(piece)
        self._held_bytes += len(piece)
        try:
            self._checker.decode(head)
        except UnicodeDecodeError:
            return self._decide_for_bytes()
        return self._decide_for_text() if self._held_bytes >= HEAD_BYTES else ""

    def settle(self) -> str:
        """Let a stream that pauses be text, if it is UTF-8 so far. Return what was held back."""
        incomplete, _ = self._checker.getstate()
        if self.kind is None and self._held_bytes > len(incomplete):
            return self._decide_for_text()
        return ""

    def end(self) -> str | bytes:
        """End the stream. Return the rest of it."""
        if self.kind is None:
            try:
                self._checker.decode(b"", final=True)
            except UnicodeDecodeError:
                return self._decide_for_bytes()
            return self._decide_for_text() + self._text.end()
        return self._text.end()

    def _decide_for_text(self) -> str:
        self.kind = "text"
        return self._text.feed(self._release())

    def _decide_for_bytes(self) -> bytes:
        self.kind = "bytes"
        return self._release()

    def _release(self) -> bytes:
        held, self._held = b"".join(self._held), []
        return held
