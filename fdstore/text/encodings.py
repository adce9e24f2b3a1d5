r"""Guess the format of bytes that are not UTF-8 from their beginning, for hints to people.

A text in UTF-16 usually begins with a byte order mark. Without one, English text in UTF-16 is half NULs, and
so it is also valid UTF-8. It is stored as it is, but the user gets a hint.
"""

from __future__ import annotations

import codecs

from fdstore.errors import InvalidArgument, quoted

HEAD_BYTES = 4096
"""The number of first bytes that are examined."""

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""UTF-32 first: its mark begins with that of UTF-16."""

_MANY, _FEW = 0.4, 0.05


def wide_encoding_of(head: bytes) -> str | None:
    r"""Return the UTF-16 or UTF-32 encoding of a text that begins with `head`; None if it looks like neither.

    >>> wide_encoding_of(b"\xff\xfeh\0i\0"), wide_encoding_of("hi you".encode("utf-16-be"))
    ('utf-16', 'utf-16-be')
    """
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    pairs = len(head) // 2
    if head.count(0) < 2:  # in a text this short, one NUL proves nothing
        return None
    first, second = (head[i : 2 * pairs : 2].count(0) / pairs for i in (0, 1))
    if second >= _MANY and first <= _FEW:
        return "utf-16-le"
    return "utf-16-be" if first >= _MANY and second <= _FEW else None


def make_decoder(encoding: str, errors: str) -> codecs.IncrementalDecoder:
    """Return an incremental decoder of bytes to text. Raises `InvalidArgument` for an unknown encoding."""
    try:
        decoder = codecs.getincrementaldecoder(encoding)(errors)
        known = isinstance(decoder.decode(b""), str)
    except (LookupError, ValueError, TypeError, NotImplementedError):
        known = False
    if not known:
        raise InvalidArgument(
            "encoding",
            f"{quoted(encoding)} is not an encoding; known are utf-8, utf-16, latin-1, cp1252, ...",
        )
    return decoder
