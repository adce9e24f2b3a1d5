"""Packed files: one compressed file (`app.log.gz`), or an archive (`logs.tar.gz`, `logs.zip`).

Content decides what a file is, not its name. A packed file is read twice: `examine` reads it to its end,
stores nothing, and returns what is in it; then `OpenPacked` reads its members again, in order. So bombs and
damaged files are known before anything is stored. What is in an archive is never unpacked again.

    examine(file) -> Contents(entries, odd)        None: it is not packed
    OpenPacked(file, contents).read(entry)             the bytes of a member
"""

from __future__ import annotations

import io
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from io import BufferedReader
from itertools import pairwise
from typing import Any, BinaryIO, NamedTuple, cast

from fdstore.errors import InvalidArgument
from fdstore.files.source import next_block, source_name
from fdstore.files.unpacking import (
    FORMATS,
    Damaged,
    Decompressor,
    FileMeter,
    Inflating,
    Meter,
    PartOfFile,
    Unpacked,
    UnpackLimits,
    blocks_of,
)
from fdstore.model.records import ContentKind
from fdstore.text.media_types import type_of_file
from fdstore.text.quantities import format_count
from fdstore.text.utf8 import Utf8Check

TAR_BLOCK = 512
"""The size of a header of tar, which the head of a file must have to be recognized."""

HEADERS_BYTES = 1 << 18
"""The most bytes of the headers of one member of a tar archive: long names, extended attributes, sparse
maps."""

DIRECTORY_BYTES, ENTRY_BYTES = 1 << 17, 512
"""The most bytes of the directory of a zip archive, and those for each member that is allowed."""

ZIP_TYPE = "application/zip"
DOCUMENT_MARKS = ("[Content_Types].xml", "mimetype")
"""Members that documents have, which are zip archives too, and are not unpacked."""


class Odd(NamedTuple):
    """A member that could not be stored, and the reason."""

    path: str
    problem: str


class _LeftOut(Damaged):
    """A member is left out; the others are not."""


class Entry(NamedTuple):
    """A member of an archive, or what a compressed file holds: its path below the archive ("" there), its
    size, whether it is text in UTF-8, its first bytes, and where it is."""

    path: str
    size: int
    kind: ContentKind
    head: bytes
    place: Any


class Contents(NamedTuple):
    """What a packed file holds. `is_archive`: members with paths of their own, in the format `form`; else it
    is one compressed file."""

    form: str
    is_archive: bool
    entries: Sequence[Entry]
    odd: Sequence[Odd]


def is_packed(head: bytes) -> bool:
    """Return whether a file that begins so is packed: by a format that can be unpacked here."""
    found = FORMATS.get(type_of_file(head) or "")
    return type_of_file(head) == ZIP_TYPE or (found is not None and found.begin is not None) or _is_tar(head)


def without_suffix(name: str) -> str:
    """Return the name of what a compressed file holds.

    >>> [without_suffix(name) for name in ("app.log.gz", "APP.GZ", "app.log", ".gz")]
    ['app.log', 'APP', 'app.log', '.gz']
    """
    for found in FORMATS.values():
        if name.lower().endswith(found.suffix) and len(name) > len(found.suffix):
            return name[: -len(found.suffix)]
    return name


def examine(file: BinaryIO, shown: str, size: int, meter: Meter) -> Contents | None:
    """Read a packed file of this size from its beginning to its end, and return what is in it; None if it is
    not packed, or a document. `shown` is its name in messages.

    Raises `TooLarge` for a bomb, `InvalidArgument` if it is damaged.
    """
    head = next_block(file, TAR_BLOCK)
    file.seek(0)
    if not is_packed(head):
        return None
    metered = meter.of(shown, size)
    try:
        found = type_of_file(head) or ""
        if found == ZIP_TYPE:
            return _examine_zip(file, size, metered)
        if found not in FORMATS:
            return _examine_tar(_Headers(file, size), "", metered)
        unpacked = Unpacked(file, FORMATS[found].begin or _never, metered)
        if _is_tar(unpacked.read(TAR_BLOCK)):
            unpacked.seek(0)
            return _examine_tar(_Headers(unpacked), found, metered)
        unpacked.seek(0)
        entry = _survey("", unpacked, None)
        odd = _left_over("", unpacked.left_over)
        return Contents(found, False, [entry], odd)
    except Damaged as error:
        raise InvalidArgument(shown, f"it is damaged and cannot be unpacked: {error}") from error


class OpenPacked:
    """A packed file that is open, from which members are read in their order. `close` closes the file."""

    def __init__(self, file: BinaryIO, contents: Contents, shown: str) -> None:
        self._file, self._contents, self._shown = file, contents, shown
        self._unpacked: Any = None
        self._tar: tarfile.TarFile | None = None

    def read(self, entry: Entry) -> BinaryIO:
        """Return a member as a file of exactly its size. Reading it raises `InvalidArgument` if it has
        changed since it was examined."""
        try:
            return cast("BinaryIO", _Exactly(self._opened(entry), entry, self._shown))
        except (Damaged, *TAR_FAILURES) as error:
            raise _changed(self._shown) from error

    def _opened(self, entry: Entry) -> Any:
        form = self._contents.form
        if form == ZIP_TYPE:
            return _zip_member(self._file, entry.place)
        if self._unpacked is None:
            self._file.seek(0)
            self._unpacked = Unpacked(self._file, FORMATS[form].begin or _never) if form else self._file
        if not self._contents.is_archive:
            self._unpacked.seek(0)
            return self._unpacked
        if self._tar is None:
            headers = _Headers(self._unpacked)
            headers.allow()
            self._tar = _open_tar(headers)
            self._tar.fileobj = self._unpacked
        return self._tar.extractfile(entry.place)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _Exactly:
    """A member of a packed file, which has as many bytes as when it was examined."""

    def __init__(self, file: Any, entry: Entry, shown: str) -> None:
        self.name = entry.path or shown
        self._file, self._left, self._shown = file, entry.size, shown

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes."""
        try:
            block: bytes = self._file.read(min(size, self._left))
        except (Damaged, tarfile.TarError, OSError) as error:
            raise _changed(self._shown) from error
        if not block and self._left:
            raise _changed(self._shown)
        self._left -= len(block)
        return block


def _changed(shown: str) -> InvalidArgument:
    return InvalidArgument(shown, "it was changed while it was read; store it again")


def _never() -> Decompressor:
    raise Damaged("this interpreter cannot unpack it")


def _survey(path: str, file: Any, place: Any) -> Entry:
    """Read a member to its end, and describe it."""
    check, size, head = Utf8Check(), 0, b""
    for block in blocks_of(file):
        size += len(block)
        head += block[: TAR_BLOCK - len(head)]
        check.feed(block)
    return Entry(path, size, "text" if check.ended() else "bytes", head, place)


def _left_over(path: str, count: int) -> list[Odd]:
    if not count:
        return []
    return [Odd(path, f"{format_count(count, 'byte')} after its end that belong to nothing")]


def _safe_path(name: str) -> str:
    """Return the path of a member below its archive. Raises `_LeftOut` for one that leads out of it."""
    if name.startswith("/"):
        raise _LeftOut("its name is absolute")
    names = [each for each in name.split("/") if each not in ("", ".")]
    if ".." in names:
        raise _LeftOut("its name holds '..'")
    if not names:
        raise _LeftOut("it has no name")
    return "/".join(names)


# tar


class _Headers:
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


def _is_tar(head: bytes) -> bool:
    """Return whether a file begins with a header of tar, whose checksum is right."""
    try:
        tarfile.TarInfo.frombuf(head[:TAR_BLOCK], "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError):
        return False
    return True


def _open_tar(file: Any) -> tarfile.TarFile:
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


def _examine_tar(headers: _Headers, form: str, meter: FileMeter) -> Contents:
    entries: list[Entry] = []
    odd: list[Odd] = []
    try:
        headers.allow()
        tar = _open_tar(headers)
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
            except _LeftOut as error:
                odd.append(Odd(_shown_name(info.name), str(error)))
            else:
                entries += [] if entry is None else [entry]
        odd += _tar_rest(headers, tar.offset)
    except TAR_FAILURES as error:
        raise Damaged(str(error)) from error
    return Contents(form, True, entries, odd)


def _tar_entry(tar: tarfile.TarFile, info: tarfile.TarInfo, headers: _Headers) -> Entry | None:
    """Return a member, None for a directory. Raises `_LeftOut` for one that is left out."""
    if info.isdir():
        return None
    if info.issym() or info.islnk():
        raise _LeftOut("it is a link")
    if info.ischr() or info.isblk():
        raise _LeftOut("it is a device")
    if info.isfifo():
        raise _LeftOut("it is a FIFO")
    if not info.isreg():
        raise _LeftOut("it is of an unknown kind")
    path = _safe_path(info.name)
    tar.fileobj = headers.file
    try:
        file = tar.extractfile(info)
        try:
            return _survey(path, file, info)
        except tarfile.ReadError as error:
            raise _Cut(str(error)) from error
    finally:
        tar.fileobj = cast("Any", headers)


class _Cut(ValueError):
    """A tar archive ends within a member: the whole of it is damaged."""


def _tar_rest(headers: _Headers, offset: int) -> list[Odd]:
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
    return _left_over("", count + getattr(headers.file, "left_over", 0))


def _shown_name(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


# zip

_LOCAL_HEADER = struct.Struct("<4s22sHH")

_ZIP_METHODS: dict[int, Any] = {
    zipfile.ZIP_STORED: None,
    zipfile.ZIP_DEFLATED: lambda: Inflating(-15),
    zipfile.ZIP_BZIP2: FORMATS["application/x-bzip2"].begin,
    **({93: FORMATS["application/zstd"].begin} if FORMATS["application/zstd"].begin else {}),
}
"""Number of a method of compression -> how to begin; None for bytes as they are."""


class _Directory(io.RawIOBase):
    """A zip archive of which `zipfile` reads the directory, within bounds: it reads all of it into memory."""

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._file, self._limit = file, limit

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:  # the end of the file, where the directory is found
            here = self._file.tell()
            size = self._file.seek(0, 2) - here
            self._file.seek(here)
        if size > self._limit:
            raise Damaged("its list of members is too long; see --max-members")
        return self._file.read(size)

    def seek(self, position: int, whence: int = 0) -> int:
        return self._file.seek(position, whence)

    def tell(self) -> int:
        return self._file.tell()


def _examine_zip(file: BinaryIO, size: int, meter: FileMeter) -> Contents | None:
    try:
        limit = max(DIRECTORY_BYTES, ENTRY_BYTES * meter.limits.members)
        with zipfile.ZipFile(cast("Any", _Directory(file, limit))) as archive:
            infos = archive.infolist()
            end = archive.start_dir
    except (
        zipfile.BadZipFile,
        ValueError,
        NotImplementedError,
        struct.error,
        OverflowError,
        OSError,
    ) as error:
        raise Damaged(str(error)) from error
    if any(info.filename == DOCUMENT_MARKS[0] for info in infos) or (
        infos and min(infos, key=lambda info: info.header_offset).filename == DOCUMENT_MARKS[1]
    ):
        return None
    for _ in infos:
        meter.add_member()
    meter.announce(sum(info.file_size for info in infos if not info.is_dir()))
    _check_overlaps(file, infos, end)
    entries: list[Entry] = []
    odd: list[Odd] = []
    for info in sorted(infos, key=lambda info: info.header_offset):
        try:
            if not info.is_dir():
                entries.append(_zip_entry(file, info, meter))
        except Damaged as error:
            odd.append(Odd(_shown_name(info.filename), str(error)))
    return Contents(ZIP_TYPE, True, entries, odd)


def _check_overlaps(file: BinaryIO, infos: Sequence[zipfile.ZipInfo], end: int) -> None:
    """Raise `Damaged` if members share bytes, as those of some bombs do."""
    places = sorted((info.header_offset, info.header_offset + info.compress_size) for info in infos)
    for (_, ended), (begun, _) in pairwise([*places, (end, end)]):
        if ended > begun:
            raise Damaged("members of it overlap")


def _zip_entry(file: BinaryIO, info: zipfile.ZipInfo, meter: FileMeter) -> Entry:
    if info.flag_bits & 0x1:
        raise Damaged("it is encrypted")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        raise Damaged("it is a link")
    if kind not in (0, stat.S_IFREG):
        raise Damaged("it is a special file")
    if info.compress_type not in _ZIP_METHODS:
        raise Damaged(f"it is packed by a method that is not known here ({info.compress_type})")
    path = _safe_path(info.filename)
    entry = _survey(path, _Checked(_zip_member(file, info, meter), info, meter), info)
    if entry.size != info.file_size:
        raise Damaged(f"it has {entry.size} bytes, and the archive says {info.file_size}")
    return entry


class _Checked:
    """A member of a zip archive: counts what is not counted as it is unpacked, and checks the checksum."""

    def __init__(self, file: Any, info: zipfile.ZipInfo, meter: FileMeter) -> None:
        self._file, self._info = file, info
        self._meter = meter if _ZIP_METHODS[info.compress_type] is None else None
        self._sum = self._size = 0

    def read(self, size: int) -> bytes:
        block: bytes = self._file.read(size)
        self._sum, self._size = zlib.crc32(block, self._sum), self._size + len(block)
        if self._meter is not None:
            self._meter.add(len(block))
        if self._size > self._info.file_size:
            raise Damaged(f"it has more bytes than the {self._info.file_size} that the archive says")
        if not block and self._sum != self._info.CRC and self._size == self._info.file_size:
            raise Damaged("its checksum is wrong")
        return block


def _zip_member(file: BinaryIO, info: zipfile.ZipInfo, meter: FileMeter | None = None) -> Any:
    """Return the data of a member as a file. `zipfile` itself would unpack some methods without a bound."""
    file.seek(info.header_offset)
    header = file.read(_LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size or not header.startswith(b"PK\3\4"):
        raise Damaged("it is not where the archive says")
    _, _, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)
    start = info.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes
    part = cast("BinaryIO", PartOfFile(file, start, info.compress_size))
    begin = _ZIP_METHODS[info.compress_type]
    return part if begin is None else Unpacked(part, begin, meter, last=True)


class Unwrapped(NamedTuple):
    """A file as it is stored where no members can be: what a compressed file holds, or any other file itself.
    `kind` is what it is, if all of it was read; `head` its first bytes."""

    file: BinaryIO
    source: str
    size: int
    kind: ContentKind | None
    head: bytes


def unwrap(file: BufferedReader, path: str) -> Unwrapped:
    """Return what a compressed file holds, checked, as a file that is read once; another file, an archive
    too, as it is. Raises as `examine`."""
    size, head = os.fstat(file.fileno()).st_size, file.peek()
    itself = Unwrapped(file, source_name(path), size, None, head)
    if FORMATS.get(type_of_file(head) or "") is None:
        return itself
    contents = examine(file, path, size, Meter(UnpackLimits()))
    file.seek(0)
    if contents is None or contents.is_archive:
        return itself
    if contents.odd:
        raise InvalidArgument(path, contents.odd[0].problem)
    [entry] = contents.entries
    inside = OpenPacked(file, contents, path).read(entry)
    return Unwrapped(inside, source_name(without_suffix(path)), entry.size, entry.kind, entry.head)
