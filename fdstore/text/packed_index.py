"""The index of a group of pages in two or three bytes a page, for a text of which each byte of memory counts.

Two numbers for each page: twice its LFs, and 1 if it does not end in LF; and how many characters it has less
than the page size. Each has seven bits a byte, the lowest ones first; the last byte is below 128. Bytes are
not in it: who unpacks it knows how many bytes more than characters each page has.

The field of the index (see `index`) is 9 bytes a page; readers that are in a hurry have that one.
"""

from __future__ import annotations

from fdstore.text.index import MID_LINE, ROW_PAGES

MOST_PACKED = 20
"""The most bytes that a page takes: two numbers of up to 70 bits."""


def pack_page(data: bytes, chars: int, page_size: int) -> bytes:
    """Return what the packed index says of a page of so many characters.

    >>> pack_page(b"ab\\n", 3, 4000), pack_page(b"ab", 2, 2)
    (b'\\x02\\x9d\\x1f', b'\\x01\\x00')
    """
    return _number(data.count(b"\n") * 2 + (not data.endswith(b"\n"))) + _number(page_size - chars)


def unpack_group(packed: bytes, page_size: int, more: list[int]) -> bytes:
    """Return the field of the index of the first pages of a text, each with so many bytes `more` than
    characters. Raises `ValueError`.

    >>> unpack_group(pack_page(b"ab\\n", 3, 4) + pack_page(b"cd", 2, 4), 4, [0, 0])
    b'0 0;1,3 0,2~'
    """
    numbers = _numbers(packed)
    chars = [page_size - missing for missing in numbers[1::2]]
    if len(numbers) != 2 * len(more) or min(chars, default=0) < 0:
        raise ValueError(f"{len(packed)} bytes are no index of {len(more)} pages")
    newlines = [each >> 1 for each in numbers[::2]]
    marks = [MID_LINE if each & 1 else "" for each in numbers[::2]]
    rows, sizes, mark = [], [0], ""
    for at in range(0, len(more), ROW_PAGES):
        row = slice(at, at + ROW_PAGES)
        pages = zip(newlines[row], chars[row], marks[row], strict=True)
        entries = " ".join(f"{count},{size}{end}" for count, size, end in pages)
        rows.append(f"{sum(newlines[:at])} {sum(chars[:at])}{mark};{entries}")
        sizes.append(sum(chars[row]) + sum(more[row]))
        mark = marks[row][-1]
    if len(rows) > 1:
        rows.append("b" + " ".join(map(str, sizes[:-1])))
    return "\n".join(rows).encode("ascii")


def _number(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


def _numbers(packed: bytes) -> list[int]:
    numbers, value, bits = [], 0, 0
    for byte in packed:
        value |= (byte & 127) << bits
        bits += 7
        if byte < 128:
            numbers.append(value)
            value = bits = 0
    if bits:
        raise ValueError("its last number is cut")
    return numbers
