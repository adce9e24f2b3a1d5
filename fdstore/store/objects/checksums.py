"""A checksum for each page of a cold content, so that no read returns another text than the one stored.

    fdstore:{triage}:triage:fd:3:sums     string    AbCdEf0A_-9b...

Each page has six characters: its CRC-32 in base64 as of URLs. A text with other characters than ASCII has
four more for each page: how many bytes more than characters it has. So the place of a page in the object
follows from the index, and GETRANGE fetches the checksums of any pages.
"""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode

from fdstore.model.records import Descriptor

SUM_CHARS, MORE_CHARS = 6, 4
MAX_MORE = (1 << 24) - 1
"""The most bytes that a page may have more than characters."""


def chars_of_a_page(descriptor: Descriptor) -> int:
    """Return how many characters of the string belong to a page."""
    is_plain = descriptor.kind == "bytes" or descriptor.chars == descriptor.bytes
    return SUM_CHARS if is_plain else SUM_CHARS + MORE_CHARS


def encode_sum(data: bytes, more: int | None) -> bytes:
    """Return the entry of a page; `more` is None where every page has as many bytes as characters.

    >>> encode_sum(b"abc", None), encode_sum("äh".encode(), 1)
    (b'NSRBwg', b'5aphjAAAAB')
    """
    checksum = urlsafe_b64encode(zlib.crc32(data).to_bytes(4))[:SUM_CHARS]
    return checksum if more is None else checksum + urlsafe_b64encode(more.to_bytes(3))


def decode_sum(entry: bytes) -> tuple[int, int]:
    """Return the checksum of an entry, and how many bytes more than characters the page has.

    >>> decode_sum(encode_sum("äh".encode(), 1)) == (zlib.crc32("äh".encode()), 1)
    True
    """
    checksum = int.from_bytes(urlsafe_b64decode(entry[:SUM_CHARS] + b"=="))
    return checksum, int.from_bytes(urlsafe_b64decode(entry[SUM_CHARS:]))
