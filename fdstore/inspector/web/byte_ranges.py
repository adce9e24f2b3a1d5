"""The HTTP side of a download: ranges of bytes, and a file name that no header can be forged with."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote

from fdstore.inspector.web.descriptor_rows import visible_text

_ONE_RANGE = re.compile(r"bytes\s*=\s*([0-9]{0,18})\s*-\s*([0-9]{0,18})", re.IGNORECASE)
MAX_NAME_CHARS = 120


class ByteRange(NamedTuple):
    """The first and the last byte to send, counted from 0."""

    first: int
    last: int


class Unsatisfiable(Exception):
    """No byte of the content is in the range: answered with 416."""


def parse_range(header: str | None, size: int) -> ByteRange | None:
    """Return the bytes that a `Range` header asks for; None for all of them, which is also the answer to
    several ranges and to a header that is not understood (RFC 9110, section 14.2).

    >>> parse_range("bytes=0-99", 1000), parse_range("bytes=-10", 1000), parse_range("bytes=1-2,5-6", 1000)
    (ByteRange(first=0, last=99), ByteRange(first=990, last=999), None)

    Raises `Unsatisfiable`.
    """
    found = _ONE_RANGE.fullmatch(header.strip()) if header else None
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        count = int(found[2])
        if count == 0 or size == 0:
            raise Unsatisfiable
        return ByteRange(max(0, size - count), size - 1)
    first = int(found[1])
    if found[2] and int(found[2]) < first:
        return None
    if first >= size:
        raise Unsatisfiable
    return ByteRange(first, min(int(found[2]) if found[2] else size - 1, size - 1))


def file_name(process: str, fd: str, source: str, extension: str) -> str:
    """Return a name for the file: that of the source if it looks like one, else of the descriptor.

    >>> file_name("triage", "fd:3", "logs/build.log", ".txt"), file_name("triage", "fd:3", "text", ".txt")
    ('build.log', 'triage-fd-3.txt')
    """
    name = fd.removeprefix("name:") if fd.startswith("name:") else source
    last = re.split(r"[/\\]", name)[-1]
    is_name = re.fullmatch(r"[^.].{0,99}\.[A-Za-z0-9]{1,8}", last)
    if is_name and visible_text(last) == last:
        return last
    return re.sub(r"[^A-Za-z0-9._-]+", "-", f"{process}-{fd}")[:MAX_NAME_CHARS] + extension


def disposition(kind: str, name: str) -> str:
    r"""Return a `Content-Disposition` header; `kind` is "attachment" or "inline". The name is given in ASCII
    and in full (RFC 6266).

    >>> disposition("attachment", 'a"b\r\n.log')
    'attachment; filename="a_b__.log"; filename*=UTF-8\'\'a%22b%0D%0A.log'
    """
    plain = re.sub(r"[^A-Za-z0-9 ._()+-]", "_", name)
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
