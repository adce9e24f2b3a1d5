"""URIs of contents: `fdstore://triage/fd:3`, with `?page=2`, `?lines=10-20`, `?chars=1-99` or the pointer of
JSON `?json=/results/0` for a part.

The part is in the query because clients keep a fragment (`#L10-20`) to themselves. URIs come from models:
whatever names no content is a typed error, and nothing of it reaches Redis.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.model.records import Mode
from fdstore.store.keys import check_process
from fdstore.text.json_pointer import parse_pointer
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.selection import AnyPart, JsonValue, Part, fd_id

SCHEME = "fdstore://"
TEMPLATE = "fdstore://{process}/{fd}{?page,lines,chars,json}"

MAX_URI_CHARS = 8192
"""Longer than the URI of any content: a name has 1024 bytes, each of which may be written as %XX."""

MODES: dict[str, Mode] = {"page": "page", "lines": "line", "chars": "char"}

_RANGE = re.compile(r"([1-9][0-9]{0,15})(?:-([1-9][0-9]{0,15}))?")
_FORMS = (
    "write fdstore://PROCESS/fd:3, with ?page=2, ?lines=10-20, ?chars=1-99 or ?json=/results/0 for a part"
)


class Address(msgspec.Struct, frozen=True):
    """A content of a process, or a part of it (None: everything)."""

    process: str
    fd: str
    part: AnyPart | None = None


def uri_of(process: str, fd: str) -> str:
    """Return the URI of a content.

    >>> uri_of("triage", "name:notes/plan.md")
    'fdstore://triage/name:notes%2Fplan.md'
    """
    return f"{SCHEME}{process}/{quote(fd, safe=':')}"


def parse_uri(uri: str) -> Address:
    """Parse the URI of a content or of a part. Raises `InvalidArgument`.

    >>> parse_uri("fdstore://triage/fd%3A3?lines=10-20")
    Address(process='triage', fd='fd:3', part=Part(mode='line', start=10, count=11))
    """
    if not uri.startswith(SCHEME) or len(uri) > MAX_URI_CHARS:
        raise InvalidArgument("uri", f"{quoted(uri)} is not the URI of a content; {_FORMS}")
    if "#" in uri:
        raise InvalidArgument("uri", f"{quoted(uri)} has a fragment, which names no part here; {_FORMS}")
    path, _, query = uri.removeprefix(SCHEME).partition("?")
    process, _, fd = path.partition("/")
    return Address(check_process(process), fd_id(_decoded(uri, fd)), _part(uri, query) if query else None)


def _decoded(uri: str, written: str) -> str:
    try:
        return unquote_to_bytes(written).decode("utf-8")
    except UnicodeError as error:
        raise InvalidArgument("uri", f"{quoted(uri)} is not UTF-8 when decoded; {_FORMS}") from error


def _part(uri: str, query: str) -> AnyPart:
    name, _, value = query.partition("=")
    if name == "json":
        pointer = _decoded(uri, value)
        parse_pointer(pointer)
        return JsonValue(pointer)
    found = _RANGE.fullmatch(value)
    if name not in MODES or not found:
        raise InvalidArgument("uri", f"{quoted(query)} names no part in {quoted(uri)}; {_FORMS}")
    start, last = int(found[1]), int(found[2] or found[1])
    if not start <= last <= MAX_INTEGER:
        raise InvalidArgument("uri", f"{quoted(query)}: ranges run upwards from 1; {_FORMS}")
    return Part(MODES[name], start, last - start + 1)
