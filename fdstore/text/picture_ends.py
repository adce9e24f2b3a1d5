"""Whether a picture is whole: a PNG by its chunks and the stream of its pixels, a JPEG by its segments. What
follows the end of a picture, such as a film, does not count.

    PNG    signature  IHDR  ...  IDAT (zlib)  IDAT  ...  IEND
    JPEG   SOI  APP1 (may hold a small picture with an end of its own)  ...  SOS  pixels  ...  EOI
"""

from __future__ import annotations

import re
import zlib

MAX_UNPACKED_BYTES = 64_000_000
"""Pixels of a PNG that are unpacked; those of a larger one count as complete."""

UNPACKED_AT_ONCE = 1 << 20

_JPEG_END = 0xD9
# among pixels FF00 is no marker, and neither are restarts; FFFF is filling
_JPEG_MARKER = re.compile(rb"\xff([^\x00\x01\xd0-\xd7\xff])")


def is_whole_png(data: bytes) -> bool:
    """Return whether a PNG has its end, and all of its pixels before it."""
    at = 8
    parts: list[memoryview] = []
    while (header := data[at : at + 8])[4:].isalpha() and len(header) == 8:
        size, kind = int.from_bytes(header[:4], "big"), header[4:]
        if kind == b"IEND":
            return _is_whole_stream(parts)
        if kind == b"IDAT":
            parts.append(memoryview(data)[at + 8 : at + 8 + size])
        at += size + 12
    return False


def _is_whole_stream(parts: list[memoryview]) -> bool:
    pixels, unpacked = zlib.decompressobj(), 0
    for part in parts:
        packed: bytes | memoryview = part
        while len(packed) and not pixels.eof:
            try:
                unpacked += len(pixels.decompress(packed, UNPACKED_AT_ONCE))
            except zlib.error:
                return False
            if unpacked > MAX_UNPACKED_BYTES:
                return True
            packed = pixels.unconsumed_tail
    return pixels.eof


def is_whole_jpeg(data: bytes) -> bool:
    r"""Return whether a JPEG has its end, outside of its segments.

    >>> is_whole_jpeg(b"\xff\xd8\xff\xda\x00\x02 pixels\xff\xd9 and more"), is_whole_jpeg(b"\xff\xd8\xff\xda")
    (True, False)
    """
    at = 2
    while found := _JPEG_MARKER.search(data, at):
        if found[1][0] == _JPEG_END:
            return True
        at = found.end() + max(2, int.from_bytes(data[found.end() : found.end() + 2], "big"))
    return False
