"""The hash of the pages: field `3` is page 3, or its beginning if there is a field `3+` with the rest of it.

Such a beginning ends with `GOES_ON`, for whoever looks at the field with redis-cli; readers leave it out.

The allocator of Redis, jemalloc, has four sizes from one power of two to the next, and a value is one
allocation. A page of 65 536 bytes would be rounded up by a quarter, and pages of mixed scripts, whose sizes
lie anywhere, by a tenth on average. So a large page that would be rounded up by more than `MAX_ROUNDED_UP` is
two values: as much as fits the size below, and the rest. One command reads both fields.

Pages of up to 4000 ASCII characters, the default, are always one field. So are pages of streams: the last one
is written again and again. The record's field `split` has the number of pages that are in two fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fdstore.wire.operation import Value
from fdstore.wire.script_constants import GOES_ON

MIN_SPLIT = 4096
"""Values up to this size are rounded up by little, and a second field costs about 60 bytes."""

MAX_ROUNDED_UP = 256
"""Bytes by which a value may be rounded up before it is split."""

LONG_HEADER, SHORT_HEADER = 10, 6
"""Bytes of a Redis string besides its text, of 64 KiB or more, and of less: its header and a final NUL."""


def split(data: bytes, *, is_text: bool) -> tuple[bytes, bytes]:
    r"""Return the values of a page: its beginning with `GOES_ON`, and its rest; or all of it and nothing, for
    a page in one field. Of text, each is UTF-8.

    >>> head, rest = split(bytes(65536), is_text=False)
    >>> len(head), len(rest)
    (65530, 65)
    >>> [len(value) for value in split(b"x" * 4000, is_text=True)]
    [4000, 0]
    """
    size = len(data)
    if size <= MIN_SPLIT:
        return data, b""
    allocated = size + (SHORT_HEADER if size < 1 << 16 else LONG_HEADER)
    step = 1 << (allocated - 1).bit_length() - 3
    over = allocated % step
    if over == 0 or step - over <= MAX_ROUNDED_UP:
        return data, b""
    below = allocated - over
    cut = below - (SHORT_HEADER if below <= 1 << 16 else LONG_HEADER) - len(GOES_ON)
    if is_text:
        while data[cut] & 0xC0 == 0x80:  # inside a character
            cut -= 1
    return data[:cut] + GOES_ON, data[cut:]


def rest_of(page: int) -> str:
    """Return the field of a page's rest.

    >>> rest_of(3)
    '3+'
    """
    return f"{page}+"


def fields_of(pages: Iterable[int]) -> list[Value]:
    """Return the fields to fetch for these pages, if any page may be in two.

    >>> fields_of([1, 2])
    [1, '1+', 2, '2+']
    """
    return [field for page in pages for field in (page, f"{page}+")]


def joined(values: Sequence[bytes | None]) -> list[bytes | None]:
    """Return the pages in the reply for `fields_of`; None for a page that is missing.

    >>> joined([b"a", None, b"b" + GOES_ON, b"c", None, None])
    [b'a', b'bc', None]
    """
    return [
        head if head is None or rest is None else head[: -len(GOES_ON)] + rest
        for head, rest in zip(values[::2], values[1::2], strict=True)
    ]
