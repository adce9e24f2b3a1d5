"""Rows of a hex dump: the offset, sixteen bytes in hexadecimal, and their printable ASCII characters."""

from __future__ import annotations

from fdstore.records import Record

ROW_BYTES = 16

BLOCK_BYTES = 4096
"""Bytes of one block of a dump: what a page is of a text."""


class HexRow(Record, frozen=True):
    """One row: the offset of its first byte, the bytes in hexadecimal, and as characters."""

    offset: int
    hex: str
    ascii: str


def hex_rows(data: bytes, offset: int = 0) -> list[HexRow]:
    """Return the rows of `data`, whose first byte has this offset.

    >>> hex_rows(b"one\\n", 32)
    [HexRow(offset=32, hex='6f 6e 65 0a  ', ascii='one.')]
    """
    return [
        HexRow(offset + i, _pairs(data[i : i + ROW_BYTES]), _printable(data[i : i + ROW_BYTES]))
        for i in range(0, len(data), ROW_BYTES)
    ]


def _pairs(row: bytes) -> str:
    return f"{row[:8].hex(' ')}  {row[8:].hex(' ')}"


def _printable(data: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data)
