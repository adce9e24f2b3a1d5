"""A checksum for each page of a cold content, so that no read returns another text than the one stored.

    fdstore:{triage}:triage:fd:3:sums     string    *t-<iGu4$@2iFDfriERk...

Each page has ten characters: eight bytes of its BLAKE2b digest in base85. Whoever can write the objects
cannot make another page of the same digest, as they could with a CRC. A text with other characters than ASCII
has three more characters for each page, as many as its size needs: how many bytes more than characters it
has. So the place of a page in the object follows from the index, and GETRANGE fetches the checksums of any
pages.
"""

from __future__ import annotations

import hashlib
from base64 import b85decode, b85encode

from fdstore.model.records import Descriptor

DIGEST_BYTES, DIGEST_CHARS = 8, 10

MOST_MORE = 3
"""The most bytes that a character has more than one."""


def chars_of_a_page(descriptor: Descriptor) -> int:
    """Return how many characters of the string belong to a page."""
    return DIGEST_CHARS + (more_bytes_of(descriptor) * 5 + 3) // 4


def more_bytes_of(descriptor: Descriptor) -> int:
    """Return in how many bytes the entry of a page says how many bytes more than characters it has; 0 where
    every page has as many."""
    if descriptor.kind == "bytes" or descriptor.chars == descriptor.bytes:
        return 0
    most = MOST_MORE * min(descriptor.page_size, descriptor.chars)
    return (most.bit_length() + 7) // 8


def digest_of_page(data: bytes) -> bytes:
    """Return the checksum of a page, as in its entry.

    >>> digest_of_page(b"abc")
    b'*t-<iGu4$@'
    """
    return b85encode(hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest())


def encode_sum(data: bytes, more: int, more_bytes: int) -> bytes:
    """Return the entry of a page that has so many bytes `more` than characters. Raises `OverflowError` if
    `more_bytes` do not hold that.

    >>> encode_sum(b"abc", 0, 0), encode_sum("äh".encode(), 1, 2)
    (b'*t-<iGu4$@', b'2iFDfriERk009')
    """
    return digest_of_page(data) + b85encode(more.to_bytes(more_bytes))


def decode_sum(entry: bytes) -> tuple[bytes, int]:
    """Return the checksum of an entry, and how many bytes more than characters the page has. Raises
    `ValueError`.

    >>> decode_sum(encode_sum("äh".encode(), 1, 2)) == (digest_of_page("äh".encode()), 1)
    True
    """
    return entry[:DIGEST_CHARS], int.from_bytes(b85decode(entry[DIGEST_CHARS:]))
