"""The index in two or three bytes a page, for texts of which each byte of memory counts: cold ones.

Two numbers for each page: twice its LFs, and 1 if it does not end in LF; and how many characters it has less
than the page size. Each has seven bits a byte, the lowest ones first; the last byte is below 128. Bytes are
not in it.

    13107 1048100~=<the pages>
    b1112010 65536 65120

is the packed field of a group (see `index`). Where it begins, and the sizes of its rows, stay readable, and
are where scripts look for them. A text of one group needs neither: its pages follow its checksums (see
`objects.checksums`), and the sizes follow from what is there.

The field itself is 9 bytes a page; readers that are in a hurry have that one.
"""

from __future__ import annotations

from typing import NamedTuple

from fdstore.text.index import MID_LINE, ROW_PAGES

MOST_PACKED = 20
"""The most bytes that a page takes: two numbers of up to 70 bits."""

_PACKED, _MARK, _BYTES_ROW = b"=", MID_LINE.encode("ascii"), b"\nb"


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
    pages = _pages(packed, page_size)
    if len(pages) != len(more):
        raise ValueError(f"{len(packed)} bytes are no index of {len(more)} pages")
    sizes = [page.chars + each for page, each in zip(pages, more, strict=True)]
    of_rows = [sum(sizes[at : at + ROW_PAGES]) for at in range(0, len(sizes), ROW_PAGES)]
    return _field("0 0", pages, [0, *of_rows[:-1]])


def pack_field(field: bytes, page_size: int) -> bytes:
    """Return a field of the index, packed: where it begins, its pages, and the sizes of its rows as they are,
    so that scripts bisect packed ones like others.

    >>> pack_field(b"0 0;1,3 0,2~", 4)
    b'0 0=\\x02\\x01\\x01\\x02\\nb0'
    """
    rows, found, sizes = field.rpartition(_BYTES_ROW)
    packed = bytearray()
    for row in (rows if found else field).split(b"\n"):
        for entry in row.partition(b";")[2].split(b" "):
            newlines, _, chars = entry.removesuffix(_MARK).partition(b",")
            packed += _number(int(newlines) * 2 + entry.endswith(_MARK)) + _number(page_size - int(chars))
    return field.partition(b";")[0] + _PACKED + packed + _BYTES_ROW + (sizes if found else b"0")


def is_packed(field: bytes) -> bool:
    """Return whether this is the result of `pack_field`, and no field that readers know."""
    head, found, _ = field.partition(_PACKED)
    return bool(found) and b";" not in head


def unpack_field(packed: bytes, page_size: int) -> bytes:
    """Return the field of the index that was packed. Raises `ValueError`.

    >>> unpack_field(pack_field(b"0 0;1,3 0,2~", 4), 4)
    b'0 0;1,3 0,2~'
    """
    head, _, rest = packed.partition(_PACKED)
    of_pages, _, sizes = rest.rpartition(_BYTES_ROW)
    pages, of_rows = _pages(of_pages, page_size), [_count(size.decode("ascii")) for size in sizes.split()]
    if not pages or len(of_rows) != -(-len(pages) // ROW_PAGES):
        raise ValueError(f"a packed index of {len(pages)} pages has the sizes of {len(of_rows)} rows")
    return _field(head.decode("ascii"), pages, of_rows)


class _Page(NamedTuple):
    newlines: int
    chars: int
    mark: str


def _pages(packed: bytes, page_size: int) -> list[_Page]:
    numbers = _numbers(packed)
    pages = [
        _Page(ends >> 1, page_size - missing, MID_LINE if ends & 1 else "")
        for ends, missing in zip(numbers[::2], numbers[1::2], strict=False)
    ]
    if len(numbers) % 2 or min((page.chars for page in pages), default=0) < 0:
        raise ValueError(f"{len(packed)} bytes are no index of pages")
    return pages


def _field(head: str, pages: list[_Page], sizes: list[int]) -> bytes:
    """Return the field of pages. `head` is what its first row says of the text before; `sizes` are the bytes
    before the pages, and those of each row but the last."""
    before, _, chars_before = head.partition(" ")
    newlines, chars = _count(before), _count(chars_before.removesuffix(MID_LINE))
    rows = []
    for at in range(0, len(pages), ROW_PAGES):
        row = pages[at : at + ROW_PAGES]
        entries = " ".join(f"{page.newlines},{page.chars}{page.mark}" for page in row)
        rows.append(f"{head};{entries}")
        newlines += sum(page.newlines for page in row)
        chars += sum(page.chars for page in row)
        head = f"{newlines} {chars}{row[-1].mark}"
    if sizes != [0]:
        rows.append("b" + " ".join(map(str, sizes)))
    return "\n".join(rows).encode("ascii")


def _count(digits: str) -> int:
    if not digits.isdecimal():
        raise ValueError(f"{digits[:20]!r} is not a count")
    return int(digits)


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
