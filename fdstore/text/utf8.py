"""Bytes that come piece by piece, as text: whole characters only, and nothing lost.

Programs write what they like and pipes cut it where they like. A character that is cut waits for its
rest; a byte that belongs to no character becomes the four characters `\\xNN`.
"""

from __future__ import annotations

from codecs import utf_8_decode

_ESCAPED = len("\\xNN")


class Utf8Text:
    r"""Decodes one stream of bytes. `replaced` counts the bytes that were not UTF-8 so far.

    >>> stream = Utf8Text()
    >>> stream.feed(b"caf\xc3"), stream.feed(b"\xa9 \xff"), stream.end(), stream.replaced
    ('caf', 'é \\xff', '', 1)
    """

    def __init__(self) -> None:
        self._cut = b""
        self.replaced = 0

    def feed(self, piece: bytes) -> str:
        """The text that is complete with `piece`; up to 3 bytes are held back."""
        return self._decode(self._cut + piece if self._cut else piece, final=False)

    def end(self) -> str:
        """The rest: a character that was begun and never ended."""
        return self._decode(self._cut, final=True)

    def _decode(self, data: bytes, *, final: bool) -> str:
        text, used = utf_8_decode(data, "backslashreplace", final)
        self._cut = data[used:]
        # a good byte is as long in the text as it was, a bad one is written with four
        self.replaced += (len(text.encode("utf-8")) - used) // (_ESCAPED - 1)
        return text
