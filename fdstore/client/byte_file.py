"""The part of binary files over contents that both clients share."""

from __future__ import annotations

import io

from fdstore.errors import InvalidArgument

READ_AHEAD = 262_144
"""Bytes that a file fetches at a time when less is read."""


def position_after_seek(position: int, size: int, offset: int, whence: int) -> int:
    """Return where a file at `position` is after `seek(offset, whence)`; `size` matters only for the end.
    Raises `InvalidArgument`."""
    start = {io.SEEK_SET: 0, io.SEEK_CUR: position, io.SEEK_END: size}.get(whence)
    if start is None:
        raise InvalidArgument("whence", "use 0 (start), 1 (current position) or 2 (end)")
    if start + offset < 0:
        raise InvalidArgument("offset", "the position would be before the start of the content")
    return start + offset
