"""The part of binary files over contents that both clients share."""

from __future__ import annotations

import errno
import io

from fdstore.errors import InvalidArgument

READ_AHEAD = 262_144
"""Bytes that a file fetches at a time when less is read."""


class SeekRefused(InvalidArgument, OSError, ValueError):
    """A file was to be moved before its start, or from nowhere. It is an `OSError` and a `ValueError` too, as
    of any file: libraries that look for the end of one, such as `zipfile`, try that."""

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(argument, problem)
        self.errno, self.strerror = errno.EINVAL, problem


def position_after_seek(position: int, size: int, offset: int, whence: int) -> int:
    """Return where a file at `position` is after `seek(offset, whence)`; `size` matters only for the end.
    Raises `SeekRefused`."""
    start = {io.SEEK_SET: 0, io.SEEK_CUR: position, io.SEEK_END: size}.get(whence)
    if start is None:
        raise SeekRefused("whence", "use 0 (start), 1 (current position) or 2 (end)")
    if start + offset < 0:
        raise SeekRefused("offset", "the position would be before the start of the content")
    return start + offset
