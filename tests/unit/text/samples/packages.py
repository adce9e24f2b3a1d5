"""Make packed files that Python has no module for: a RAR archive, a package of Debian and one of RPM."""

from __future__ import annotations

import gzip
import hashlib
import struct
import zlib
from collections.abc import Sequence

from tests.unit.files.packing import tar_of


def rar_of(name: str, data: bytes) -> bytes:
    """Return a RAR archive, of version 4, with one stored file."""

    def block(kind: int, flags: int, body: bytes, size: int) -> bytes:
        checked = struct.pack("<BHH", kind, flags, size) + body
        return struct.pack("<H", zlib.crc32(checked) & 0xFFFF) + checked

    sizes = (len(data), len(data))
    file = struct.pack("<LLBLLBBHL", *sizes, 3, zlib.crc32(data), 0x21, 20, 0x30, len(name), 0o100644)
    file += name.encode()
    archive = block(0x73, 0, bytes(6), 13) + block(0x74, 0x8000, file, 7 + len(file)) + data
    return b"Rar!\x1a\x07\0" + archive + block(0x7B, 0x4000, b"", 7)


def deb_of(name: str, data: bytes) -> bytes:
    """Return a package of Debian that has this file."""
    control = b"Package: sample\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: sample\n"
    members = {
        b"debian-binary": b"2.0\n",
        b"control.tar.gz": tar_of(("control", control), mode="w:gz"),
        b"data.tar.gz": tar_of((name, data), mode="w:gz"),
    }
    return b"!<arch>\n" + b"".join(
        b"%-16s%-12d%-6d%-6d%-8d%-10d`\n" % (member, 0, 0, 0, 100644, len(body))
        + body
        + b"\n" * (len(body) % 2)
        for member, body in members.items()
    )


TEXT, BINARY, TEXTS = 6, 7, 9


def rpm_of(name: str, description: str) -> bytes:
    """Return an RPM package without files."""
    about = {1000: name, 1001: "1", 1002: "1", 1004: "sample", 1005: description, 1014: "MIT", 1016: "sample"}
    about |= {1021: "linux", 1022: "noarch", 1124: "cpio", 1125: "gzip", 1126: "9"}
    in_languages = (1004, 1005, 1016)
    header = _rpm_header(63, [(tag, TEXTS if tag in in_languages else TEXT, about[tag]) for tag in about])
    signature = _rpm_header(62, [(273, TEXT, hashlib.sha256(header).hexdigest())])
    signature += bytes(-len(signature) % 8)
    lead = struct.pack(">4sBBHH66sHH16x", b"\xed\xab\xee\xdb", 3, 0, 0, 255, f"{name}-1-1".encode(), 1, 5)
    trailer = b"TRAILER!!!\0"
    fields = [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, len(trailer), 0]
    payload = b"070701" + b"".join(b"%08X" % each for each in fields) + trailer
    return lead + signature + header + gzip.compress(payload.ljust(124, b"\0"))


def _rpm_header(region: int, texts: Sequence[tuple[int, int, str]]) -> bytes:
    """Return a header of texts; its region, which is said at its end, is all of it."""
    index, store = b"", b""
    for tag, kind, text in texts:
        index += struct.pack(">LLLL", tag, kind, len(store), 1)
        store += text.encode() + b"\0"
    count = len(texts) + 1
    index = struct.pack(">LLLL", region, BINARY, len(store), 16) + index
    store += struct.pack(">LLlL", region, BINARY, -16 * count, 16)
    return struct.pack(">LLLL", 0x8EADE801, 0, count, len(store)) + index + store
