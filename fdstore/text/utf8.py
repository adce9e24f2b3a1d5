"""Decode a stream of bytes to text, without losing any byte.

Programs write any bytes, and pipes split them anywhere. An incomplete character is held back until the next
piece; a byte that is not UTF-8 becomes the four characters `\\xNN`.
"""

from __future__ import annotations

from codecs import utf_8_decode

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
