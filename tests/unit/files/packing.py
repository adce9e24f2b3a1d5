"""Make packed files: whole ones, and those that an attacker would make."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

TarMember = tuple[str, bytes] | tarfile.TarInfo


def tar_of(*members: TarMember, mode: str = "w") -> bytes:
    """Return a tar archive of these members: a name and its data, or a header without data."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode, format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            tar.addfile(info, io.BytesIO(member[1]))
    return made.getvalue()


def tar_entry(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    """Return the header of a link, a device and so on."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def tar_header(name: str, size: bytes, kind: bytes = b"0", magic: bytes = b"ustar\x0000") -> bytes:
    """Return a header with these very bytes as its size."""
    fields = [
        *(name.encode().ljust(100, b"\0"), b"0000644\0", b"0000000\0", b"0000000\0"),
        *(size.rjust(11, b"0")[:12].ljust(12, b"\0"), b"00000000000\0", b" " * 8, kind, b"\0" * 100, magic),
    ]
    header = b"".join(fields).ljust(512, b"\0")
    checksum = b"%06o\0 " % sum(header)
    return header[:148] + checksum + header[156:]


def in_base_256(number: int) -> bytes:
    """Return a size of GNU tar, which may be below 0."""
    return (b"\xff" if number < 0 else b"\x80") + number.to_bytes(11, "big", signed=True)


def zip_of(
    members: Mapping[str, bytes] | Sequence[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    """Return a zip archive of these members."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, data in members.items() if isinstance(members, Mapping) else members:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return made.getvalue()


class Raw(NamedTuple):
    """A member of a zip archive as its directory describes it, true or not."""

    name: bytes
    data: bytes
    size: int
    crc: int
    method: int = 0
    flags: int = 0
    mode: int = 0o100644
    offset: int | None = None
    packed_size: int | None = None


def raw_zip(*members: Raw, end: bytes = b"") -> bytes:
    """Return a zip archive whose directory says what it likes."""
    body, directory = b"", b""
    for each in members:
        offset = len(body) if each.offset is None else each.offset
        packed = len(each.data) if each.packed_size is None else each.packed_size
        sizes = (each.crc, packed, each.size, len(each.name))
        body += struct.pack("<4sHHHHHLLLHH", b"PK\3\4", 20, each.flags, each.method, 0, 33, *sizes, 0)
        body += each.name + each.data
        directory += struct.pack(
            *("<4sHHHHHHLLLHHHHHLL", b"PK\1\2", 0x0314, 20, each.flags, each.method, 0, 33, *sizes, 0, 0),
            *(0, 0, each.mode << 16, offset),
        )
        directory += each.name
    count = len(members)
    tail = struct.pack("<4sHHHHLLH", b"PK\5\6", 0, 0, count, count, len(directory), len(body), len(end))
    return body + directory + tail + end


def plain(name: str, data: bytes, **said: int) -> Raw:
    """Return a stored member, of which the directory says other things than are true, if any are given."""
    return Raw(name.encode(), data, size=len(data), crc=zlib.crc32(data))._replace(**said)


def deflated(data: bytes) -> bytes:
    """Return data as the members of zip archives have it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


Make = Callable[[], bytes]
