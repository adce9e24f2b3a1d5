"""Make pictures of words, as PNG, JPEG, WebP and GIF, and an empty page of DjVu that has words behind it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

LETTERS = {
    "s": (0, 0, 0b01111, 0b10000, 0b01110, 0b00001, 0b11110),
    "o": (0, 0, 0b01110, 0b10001, 0b10001, 0b10001, 0b01110),
    "m": (0, 0, 0b11010, 0b10101, 0b10101, 0b10101, 0b10101),
    "e": (0, 0, 0b01110, 0b10001, 0b11111, 0b10000, 0b01110),
    "t": (0b00100, 0b00100, 0b11111, 0b00100, 0b00100, 0b00100, 0b00011),
    "x": (0, 0, 0b10001, 0b01010, 0b00100, 0b01010, 0b10001),
    " ": (0, 0, 0, 0, 0, 0, 0),
}
"""Seven rows of five dots for each letter."""

DOT = 8
"""Pixels of a dot's side, so that a dot is a block of a JPEG."""

MARGIN = 4
"""Dots around the words."""

BLACK, WHITE = 0, 1


def dots(words: str) -> list[list[int]]:
    """Return rows of dots that show the words, black on white."""
    side, wide, columns = [WHITE] * MARGIN, 6 * len(words) + 2 * MARGIN, (5, 4, 3, 2, 1, 0)
    lines = [
        [
            *side,
            *(BLACK if LETTERS[each][row] >> dot & 1 else WHITE for each in words for dot in columns),
            *side,
        ]
        for row in range(7)
    ]
    above = [[WHITE] * wide] * MARGIN
    return [*above, *lines, *above]


def pixels(words: str) -> list[list[int]]:
    """Return the same in pixels."""
    return [[dot for dot in row for _ in range(DOT)] for row in dots(words) for _ in range(DOT)]


def packed(codes: Iterable[tuple[int, int]]) -> bytes:
    """Return numbers, each of so many bits, the lowest bit first."""
    bits, size = 0, 0
    for number, width in codes:
        bits |= number << size
        size += width
    return bits.to_bytes(-(-size // 8), "little")


def png_of(words: str) -> bytes:
    """Return a PNG in shades of gray."""
    rows = pixels(words)
    head = struct.pack(">LLBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    data = b"".join(b"\0" + bytes(255 * each for each in row) for row in rows)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(data)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">L", len(body)) + name + body + struct.pack(">L", zlib.crc32(name + body))
        for name, body in chunks
    )


def gif_of(words: str) -> bytes:
    """Return a GIF in 128 shades of gray that is not compressed: a code is a byte, and all codes begin again
    before some would have nine bits."""
    rows = pixels(words)
    flat = bytes(127 * each for row in rows for each in row)
    again, end, most = b"\x80", b"\x81", 100
    blocks = b"".join(
        bytes([len(again + part)]) + again + part
        for at in range(0, len(flat), most)
        if (part := flat[at : at + most])
    )
    size = struct.pack("<HH", len(rows[0]), len(rows))
    shades = bytes(2 * shade for shade in range(128) for _ in range(3))
    image = b"," + bytes(4) + size + b"\0" + b"\x07" + blocks + b"\1" + end + b"\0"
    return b"GIF89a" + size + b"\xf6\0\0" + shades + image + b";"


def webp_of(words: str) -> bytes:
    """Return a WebP without loss. Green tells a pixel in one bit; red and blue are the same as green."""
    rows = pixels(words)
    always = [[(1, 1), (0, 1), (1, 1), (symbol, 8)] for symbol in (0, 0, 255)]
    codes = [
        *((0x2F, 8), (len(rows[0]) - 1, 14), (len(rows) - 1, 14), (0, 1), (0, 3)),
        *((1, 1), (2, 2), (0, 1)),  # green is taken off red and blue; no other transform
        *((0, 1), (0, 1)),  # no cache of colours, one set of codes
        *((1, 1), (1, 1), (0, 1), (0, 1), (255, 8)),  # green is 0 or 255
        *(each for one in always for each in one),  # red, blue, opacity
        *((1, 1), (0, 1), (0, 1), (0, 1)),  # no distances
        *((each, 1) for row in rows for each in row),
    ]
    data = packed(codes)
    data += b"\0" * (len(data) % 2)
    return b"RIFF" + struct.pack("<L", len(data) + 12) + b"WEBPVP8L" + struct.pack("<L", len(data)) + data


def jpeg_of(words: str) -> bytes:
    """Return a JPEG in shades of gray whose blocks have one shade each. The code before the difference of two
    shades says how many bits it has: none 0, eight 10, seven 110."""
    rows = dots(words)
    bits, before = "", 0
    for row in rows:
        for dot in row:
            shade = 127 if dot == WHITE else -128
            step, before = shade - before, shade
            if step == 0:
                bits += "0"
            elif abs(step) < 128:  # the first one
                bits += "110" + f"{step if step > 0 else step + 127:07b}"
            else:
                bits += "10" + f"{step if step > 0 else step + 255:08b}"
            bits += "0"  # the end of the block
    bits += "1" * (-len(bits) % 8)
    data = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    size = struct.pack(">HH", DOT * len(rows), DOT * len(rows[0]))
    segments = (
        (0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0"),
        (0xDB, b"\0" + b"\x08" * 64),
        (0xC0, b"\x08" + size + b"\1\1\x11\0"),
        (0xC4, b"\0" + bytes([1, 1, 1, *[0] * 13]) + b"\0\x08\x07"),
        (0xC4, b"\x10" + bytes([1, *[0] * 15]) + b"\0"),
        (0xDA, b"\1\1\0\0\x3f\0"),
    )
    head = b"".join(struct.pack(">BBH", 0xFF, kind, len(body) + 2) + body for kind, body in segments)
    return b"\xff\xd8" + head + data + b"\xff\xd9"


def djvu_of(words: str) -> bytes:
    """Return an empty page of DjVu with words behind it."""
    info = struct.pack(">HHBB", 300, 100, 24, 0) + struct.pack("<HBB", 300, 22, 1)
    text = words.encode()
    zone = b"\1" + struct.pack(">HHHHH", 0x8000, 0x8000, 0x8000 + 300, 0x8000 + 100, 0x8000)
    zone += len(text).to_bytes(3, "big") + bytes(3)
    body = b"DJVU"
    for name, data in ((b"INFO", info), (b"TXTa", len(text).to_bytes(3, "big") + text + b"\1" + zone)):
        body += name + struct.pack(">L", len(data)) + data + b"\0" * (len(data) % 2)
    return b"AT&TFORM" + struct.pack(">L", len(body)) + body
