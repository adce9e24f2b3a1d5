"""Make documents of Word 95, Excel 95 and PowerPoint 97: streams in a compound file."""

from __future__ import annotations

import struct
from collections.abc import Mapping

SECTOR = 512
LEAST = 4096
"""The size of a stream from which on it has sectors of its own."""

FREE, END, TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def compound_of(streams: Mapping[str, bytes]) -> bytes:
    """Return a compound file of up to three streams: a header, a table of sectors, a directory, they."""
    table, data = [TABLE, END], b""
    entries = [_entry("Root Entry", kind=5, first=END, child=1)]
    for number, (name, stream) in enumerate(streams.items(), 1):
        filled = stream.ljust(max(LEAST, -(-len(stream) // SECTOR) * SECTOR), b"\0")
        first, sectors = len(table), len(filled) // SECTOR
        after = number + 1 if number < len(streams) else FREE
        entries.append(_entry(name, kind=2, first=first, size=len(filled), after=after))
        table += [*range(first + 1, first + sectors), END]
        data += filled
    header = struct.pack(
        "<8s16sHHHHH6sLLLLLLLLLL",
        *(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", bytes(16), 0x3E, 3, 0xFFFE, 9, 6, bytes(6)),
        *(0, 1, 1, 0, LEAST, END, 0, END, 0, 0),
    )
    listed = struct.pack(f"<{len(table)}L", *table).ljust(SECTOR, b"\xff")
    return header.ljust(SECTOR, b"\xff") + listed + b"".join(entries).ljust(SECTOR, b"\0") + data


def _entry(name: str, *, kind: int, first: int, size: int = 0, child: int = FREE, after: int = FREE) -> bytes:
    named = (name + "\0").encode("utf-16-le")
    places = (FREE, after, child)
    return struct.pack("<64sHBBLLL16sL16sLQ", named, len(named), kind, 1, *places, b"", 0, b"", first, size)


def doc_of(words: str) -> bytes:
    """Return a document of Word 95 with a paragraph of these words."""
    text, begin = words.encode("cp1252") + b"\r", 768
    head = struct.pack(
        "<HHHHHHHLHHHLL", 0xA5DC, 104, 0, 0x409, 0, 0, 104, 0, 0, 0, 0, begin, begin + len(text)
    )
    counts = struct.pack("<L16xL", begin + len(text), len(text))
    return compound_of({"WordDocument": (head + counts).ljust(begin, b"\0") + text})


def xls_of(words: str) -> bytes:
    """Return a workbook of Excel 95 with these words in its first cell."""

    def record(kind: int, data: bytes = b"") -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    begin, end, text = 0x809, record(0x0A), words.encode("cp1252")
    opened = record(begin, struct.pack("<HHHH", 0x500, 5, 0, 1995)) + record(0x42, struct.pack("<H", 1252))
    sheet = record(begin, struct.pack("<HHHH", 0x500, 16, 0, 1995))
    sheet += record(0x204, struct.pack("<HHHH", 0, 0, 0, len(text)) + text) + end
    name = b"Sheet"
    size = len(record(0x85, bytes(7) + name))
    place = struct.pack("<LHB", len(opened) + size + len(end), 0, len(name))
    return compound_of({"Book": opened + record(0x85, place + name) + end + sheet})


def ppt_of(words: str) -> bytes:
    """Return a presentation of PowerPoint 97 with a slide that has these words."""

    def atom(kind: int, data: bytes, version: int = 0) -> bytes:
        return struct.pack("<HHL", version, kind, len(data)) + data

    slide = atom(1011, struct.pack("<LLLLL", 3, 0, 1, 256, 0)) + atom(3999, bytes(4))
    slide += atom(4008, words.encode("latin-1"))
    document = atom(1000, atom(1001, bytes(40), 1) + atom(4080, slide, 15), 15) + atom(1002, b"")
    user = atom(4086, struct.pack("<LLLHHBBH", 20, 0xE391C05F, len(document), 0, 1012, 3, 0, 0))
    return compound_of({"Current User": user, "PowerPoint Document": document})
