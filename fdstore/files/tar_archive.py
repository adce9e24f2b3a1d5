"""Archives of tar: `tarfile` reads the headers, within bounds, and finds the data."""

from __future__ import annotations

import struct
import tarfile
from typing import Any, cast

from fdstore.files.archive_members import (
    Contents,
    Entry,
    LeftOutMember,
    Odd,
    left_over,
    safe_path,
    shown_name,
    survey,
)
from fdstore.files.unpacking import Damaged, FileMeter, blocks_of

TAR_BLOCK = 512
"""The size of a header of tar, which the head of a file must have to be recognized."""

HEADERS_BYTES = 1 << 18
"""The most bytes of the headers of one member of a tar archive: long names, extended attributes, sparse
maps."""


class Headers:
    """A file of which `tarfile` reads headers, within bounds: it reads whatever length a header says into
    memory. `allow` begins to count."""

    def __init__(self, file: Any, size: int | None = None) -> None:
        self.file = file
        self._size = size
        self._allowed = 0

    def allow(self) -> None:
        """Allow the headers of one member."""
        self._allowed = HEADERS_BYTES

    def read(self, size: int = -1) -> bytes:
        """Read a header."""
        self._allowed -= max(size, 0)
        if size < 0 or self._allowed < 0:
            raise Damaged("a header of it is too long")
        block: bytes = self.file.read(size)
        return block

    def seek(self, position: int, whence: int = 0) -> int:
        """Go to a position, counted from the beginning."""
        if position < 0 or (self._size is not None and position > self._size):
            raise Damaged("it ends too soon")
        found: int = self.file.seek(position)
        return found

    def tell(self) -> int:
        """Return the position."""
        found: int = self.file.tell()
        return found


def is_tar(head: bytes) -> bool:
    """Return whether a file begins with a header of tar, whose checksum is right."""
    try:
        tarfile.TarInfo.frombuf(head[:TAR_BLOCK], "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError):
        return False
    return True


def open_tar(file: Any) -> tarfile.TarFile:
    return tarfile.open(fileobj=file, mode="r:", encoding="utf-8", errors="surrogateescape")


TAR_FAILURES = (
    tarfile.TarError,
    OSError,
    ValueError,
    OverflowError,
    RecursionError,
    struct.error,
    KeyError,
    IndexError,
)
"""What `tarfile` raises for damaged headers."""


def examine_tar(headers: Headers, form: str, meter: FileMeter) -> Contents:
    entries: list[Entry] = []
    odd: list[Odd] = []
    try:
        headers.allow()
        tar = open_tar(headers)
        tar.fileobj = cast("Any", headers)
        while True:
            headers.allow()
            info = tar.next()
            if info is None:
                break
            meter.add_member()
            if info.size < 0 or info.offset_data < 0 or tar.offset <= info.offset:
                raise Damaged("a header of it says a size below 0")
            if info.isreg() and (info.issparse() or not form):
                meter.add(info.size)  # what a compressed one unpacks to is counted as it is read
            try:
                entry = _tar_entry(tar, info, headers)
            except LeftOutMember as error:
                odd.append(Odd(shown_name(info.name), str(error)))
            else:
                entries += [] if entry is None else [entry]
        odd += _tar_rest(headers, tar.offset)
    except TAR_FAILURES as error:
        raise Damaged(str(error)) from error
    return Contents(form, True, entries, odd)


def _tar_entry(tar: tarfile.TarFile, info: tarfile.TarInfo, headers: Headers) -> Entry | None:
    """Return a member, None for a directory. Raises `LeftOutMember` for one that is left out."""
    if info.isdir():
        return None
    if info.issym() or info.islnk():
        raise LeftOutMember("it is a link")
    if info.ischr() or info.isblk():
        raise LeftOutMember("it is a device")
    if info.isfifo():
        raise LeftOutMember("it is a FIFO")
    if not info.isreg():
        raise LeftOutMember("it is of an unknown kind")
    path = safe_path(info.name)
    tar.fileobj = headers.file
    try:
        file = tar.extractfile(info)
        try:
            return survey(path, file, info)
        except tarfile.ReadError as error:
            raise _Cut(str(error)) from error
    finally:
        tar.fileobj = cast("Any", headers)


class _Cut(ValueError):
    """A tar archive ends within a member: the whole of it is damaged."""


def _tar_rest(headers: Headers, offset: int) -> list[Odd]:
    """Read what follows the last member, zeros, to the end of the file: a compressed one is checked there.
    Return what is none."""
    count = 0
    with_zeros = 0
    headers.file.seek(offset)
    for block in blocks_of(headers.file):
        kept = block.rstrip(b"\0")
        if kept:
            count += with_zeros + len(kept) if count else len(kept.lstrip(b"\0"))
            with_zeros = 0
        with_zeros += len(block) - len(kept)
    return left_over("", count + getattr(headers.file, "left_over", 0))
