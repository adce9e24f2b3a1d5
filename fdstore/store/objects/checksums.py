"""A checksum for each page of a cold content, so that no read returns another text than the one stored.

    fdstore:{triage}:triage:fd:3:sums     string    8 bytes for page 1, 8 for page 2, ... [index]

The bytes are those of the page's BLAKE2b digest. Whoever can write the objects cannot make another page of
the same digest, as they could with a CRC. A text with other characters than ASCII has some more bytes for
each page, as many as its size needs: how many bytes more than characters it has. So the place of a page in
the object follows from the index, and GETRANGE fetches the entries of any pages.

A key takes as much memory as the entries of eleven pages, and the index of readers more than the digests. So
the index of a cold text is packed (`packed_index`); that of a text of up to 256 pages, which has one group of
it, follows the entries, and has no key. A short index stays in the record too.
"""

from __future__ import annotations

import hashlib

from fdstore.model.records import Descriptor
from fdstore.text.index import GROUP_PAGES, Group
from fdstore.text.packed_index import MOST_PACKED, unpack_group

DIGEST_BYTES = 8

MOST_MORE = 3
"""The most bytes that a character has more than one."""


def bytes_of_a_page(descriptor: Descriptor) -> int:
    """Return how many bytes the entry of a page has."""
    return DIGEST_BYTES + more_bytes_of(descriptor)


def more_bytes_of(descriptor: Descriptor) -> int:
    """Return in how many bytes the entry of a page says how many bytes more than characters it has; 0 where
    every page has as many."""
    if descriptor.kind == "bytes" or descriptor.chars == descriptor.bytes:
        return 0
    most = MOST_MORE * min(descriptor.page_size, descriptor.chars)
    return (most.bit_length() + 7) // 8


def has_index(descriptor: Descriptor) -> bool:
    """Return whether the index follows the entries."""
    return descriptor.kind == "text" and descriptor.pages <= GROUP_PAGES


def most_bytes_of(descriptor: Descriptor) -> int:
    """Return the most bytes of the entries of all pages and the index after them."""
    return descriptor.pages * (bytes_of_a_page(descriptor) + MOST_PACKED)


def digest_of_page(data: bytes) -> bytes:
    """Return the checksum of a page, as in its entry.

    >>> digest_of_page(b"abc").hex()
    'd8bb14d833d59559'
    """
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def encode_sum(data: bytes, more: int, more_bytes: int) -> bytes:
    """Return the entry of a page that has so many bytes `more` than characters. Raises `OverflowError` if
    `more_bytes` do not hold that.

    >>> encode_sum(b"abc", 0, 0).hex(), encode_sum("äh".encode(), 1, 2).hex()
    ('d8bb14d833d59559', '07d705efa6855da40001')
    """
    return digest_of_page(data) + more.to_bytes(more_bytes)


def decode_sum(entry: bytes) -> tuple[bytes, int]:
    """Return the checksum of an entry, and how many bytes more than characters the page has.

    >>> decode_sum(encode_sum("äh".encode(), 1, 2)) == (digest_of_page("äh".encode()), 1)
    True
    """
    return entry[:DIGEST_BYTES], int.from_bytes(entry[DIGEST_BYTES:])


def decode_sums(entries: bytes, descriptor: Descriptor) -> list[tuple[bytes, int]]:
    """Return the entries of pages that follow each other, each as `decode_sum`."""
    width = bytes_of_a_page(descriptor)
    return [decode_sum(entries[at : at + width]) for at in range(0, len(entries), width)]


def decode_index(packed: bytes, descriptor: Descriptor, more: list[int]) -> bytes:
    """Return the field of the index that follows the entries; the pages have so many bytes `more` than
    characters. Raises `ValueError` if it is not that of a text with these totals."""
    d = descriptor
    value = unpack_group(packed, d.page_size, more)
    end = Group(1, value).end
    lines = end.newlines + (end.chars > 0 and end.mid_line)
    if (end.chars, lines, end.chars + sum(more)) != (d.chars, d.lines, d.bytes):
        raise ValueError(f"its index has {end.chars} characters in {lines} lines")
    return value
