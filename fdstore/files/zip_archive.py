"""Archives of zip: `zipfile` reads the directory, within bounds; members are unpacked here, where their bytes
are counted."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, BinaryIO, NamedTuple, cast

from fdstore.files.archive_members import (
    Contents,
    Entry,
    LeftOutMember,
    Odd,
    safe_path,
    shown_name,
    survey,
)
from fdstore.files.documents.kinds import MIMETYPE, type_by_members
from fdstore.files.unpacking import (
    FORMATS,
    Damaged,
    FileMeter,
    Inflating,
    PartOfFile,
    Unpacked,
    UnpackLimits,
)
from fdstore.text.media_types import MAX_MEDIA_TYPE_CHARS

DIRECTORY_BYTES, ENTRY_BYTES = 1 << 17, 512
"""The most bytes of the directory of a zip archive, and those for each member that is allowed."""

ZIP_TYPE = "application/zip"

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


class Directory(NamedTuple):
    """The members of a zip archive in the order of their data, and where the directory begins."""

    infos: Sequence[zipfile.ZipInfo]
    start: int


def read_directory(file: BinaryIO, limits: UnpackLimits) -> Directory:
    """Return the directory of a zip archive. Raises `Damaged`."""
    try:
        limit = max(DIRECTORY_BYTES, ENTRY_BYTES * limits.members)
        with zipfile.ZipFile(cast("Any", _Directory(file, limit))) as archive:
            infos = sorted(archive.infolist(), key=lambda info: info.header_offset)
            return Directory(infos, archive.start_dir)
    except (
        zipfile.BadZipFile,
        ValueError,
        NotImplementedError,
        struct.error,
        OverflowError,
        OSError,
    ) as error:
        raise Damaged(str(error)) from error


def document_type_of(file: BinaryIO, directory: Directory) -> str | None:
    """Return the media type of a document, as `type_by_members`."""
    names = [info.filename for info in directory.infos]
    said = ""
    if names[:1] == [MIMETYPE]:
        said = zip_member(file, directory.infos[0]).read(MAX_MEDIA_TYPE_CHARS).decode("latin-1").strip()
    return type_by_members(names, said)


def examine_zip(file: BinaryIO, meter: FileMeter) -> Contents | None:
    """Return what is in a zip archive; None for a document. Raises `Damaged`, `TooLarge`."""
    directory = read_directory(file, meter.limits)
    if document_type_of(file, directory) is not None:
        return None
    entries: list[Entry] = []
    odd: list[Odd] = []
    for found in _examine_members(file, directory, meter):
        match found:
            case Entry():
                entries.append(found)
            case name, error:
                odd.append(Odd(shown_name(name), str(error)))
    return Contents(ZIP_TYPE, True, entries, odd)


def check_document(file: BinaryIO, meter: FileMeter) -> None:
    """Check the members of a document that is a zip archive, by reading all of them. Raises `Damaged`,
    `TooLarge`."""
    for found in _examine_members(file, read_directory(file, meter.limits), meter):
        if not isinstance(found, Entry) and not isinstance(found[1], LeftOutMember):
            raise found[1]


def _examine_members(
    file: BinaryIO, directory: Directory, meter: FileMeter
) -> Iterator[Entry | tuple[str, Damaged]]:
    """Yield the members, and the names of those that are left out with the reason."""
    for _ in directory.infos:
        meter.add_member()
    meter.announce(sum(info.file_size for info in directory.infos if not info.is_dir()))
    _check_overlaps(file, directory)
    for info in directory.infos:
        if not info.is_dir():
            try:
                found = _zip_entry(file, info, meter)
            except Damaged as error:
                yield info.filename, error
            else:
                yield found


def _check_overlaps(file: BinaryIO, directory: Directory) -> None:
    """Raise `Damaged` if members share bytes, as those of some bombs do."""
    places = sorted((info.header_offset, info.header_offset + info.compress_size) for info in directory.infos)
    end = directory.start
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
    path = safe_path(info.filename)
    entry = survey(path, _Checked(zip_member(file, info, meter), info, meter), info)
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


def zip_member(file: BinaryIO, info: zipfile.ZipInfo, meter: FileMeter | None = None) -> Any:
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
