r"""A message as it came, and what it says.

>>> message = Message(b'\xef\xbb\xbf{"id": 1, "result": {"n": NaN}}\n')
>>> bytes(message.fields["result"]), Message(b"Starting...").problem
(b'{"n": NaN}', 'it is not JSON')
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

from msgspec import Raw

from fdstore.hosts.gateway.json_parts import (
    SHORT_BYTES,
    Parts,
    dumps,
    first_parts_of,
    is_json,
    is_utf8,
    items_of,
    parts_of,
)
from fdstore.hosts.gateway.json_scan import BLANKS, Buffer, split, strings

MAX_MESSAGE_BYTES = 256 << 20
UNANSWERED = -32000
"""The code of an error without another one."""
EDGE_BYTES = 1 << 16
"""The bytes at either end of a longer message in which its id is looked for."""

TOO_LONG = f"a message has more than {MAX_MESSAGE_BYTES >> 20} MiB, which the gateway does not pass on"

_LINE_BREAK = re.compile(rb"[\r\n]")
_ID_AT_END = re.compile(
    rb',[ \t]*"id"[ \t]*:[ \t]*("[^"\\]{0,500}"|-?[0-9.eE+-]{1,30})[ \t]*'
    rb'(?:,[ \t]*"jsonrpc"[ \t]*:[ \t]*"2.0"[ \t]*)?\}[ \t\r\n]*\Z'
)


def line_break_of(line: Buffer) -> bytes:
    r"""Return the line break at the end of a line.

    >>> line_break_of(b"one\r\n"), line_break_of(b"one")
    (b'\r\n', b'')
    """
    end = bytes(line[-2:])
    return end[len(end.rstrip(b"\r\n")) :]


class _Read(NamedTuple):
    fields: Parts | None
    items: list[Raw] | None
    problem: str


class Message:
    """A message, `whole` as it came but for a byte order mark before it.

    end       what ends it on a line: its own line break, if it is a line
    fields    the members of one message
    items     the messages of a batch
    problem   why it is neither, for people; "" also for an empty line
    """

    def __init__(self, whole: Buffer, end: bytes | None = None) -> None:
        self.end = line_break_of(whole) if end is None else end
        if bytes(whole[: len(BOM_UTF8)]) == BOM_UTF8:
            whole = memoryview(whole)[len(BOM_UTF8) :]
        self.whole = whole

    @property
    def fields(self) -> Parts | None:
        return self._read.fields

    @property
    def items(self) -> list[Raw] | None:
        return self._read.items

    @property
    def problem(self) -> str:
        return self._read.problem

    @cached_property
    def _read(self) -> _Read:
        if not is_json(self.whole):
            is_blank = len(self.whole) <= SHORT_BYTES and not bytes(self.whole).strip(BLANKS)
            return _Read(None, None, "" if is_blank else "it is not JSON")
        if (fields := parts_of(self.whole)) is not None:
            return _Read(fields, None, "")
        if (items := items_of(self.whole)) is not None:
            return _Read(None, items, "")
        begins = bytes(self.whole[:SHORT_BYTES]).lstrip(BLANKS)[:1]
        has_too_many = begins in (b"{", b"[") and split(self.whole) is None
        return _Read(None, None, "it has too many parts" if has_too_many else "it is no message")

    @property
    def is_utf8(self) -> bool:
        return is_utf8(self.whole)

    def has(self, word: bytes) -> bool:
        """Return whether a word stands anywhere in the message."""
        return re.search(re.escape(word), self.whole) is not None

    def on_one_line(self) -> Message:
        """Return the message without line breaks: they become blanks, and escapes in strings."""
        view = memoryview(self.whole)
        while view and view[-1] in BLANKS:
            view = view[:-1]
        if not _LINE_BREAK.search(view):
            return Message(view if len(view) < len(self.whole) else self.whole, b"\n")
        pieces: list[Buffer] = []
        kept = 0
        for start, end in strings(view):
            if _LINE_BREAK.search(view, start, end):
                text = bytes(view[start:end]).replace(b"\r", b"\\r").replace(b"\n", b"\\n")
                pieces += [_blanked(view[kept:start]), text]
                kept = end
        return Message(b"".join([*pieces, _blanked(view[kept:])]), b"\n")


def _blanked(text: memoryview) -> bytes:
    return bytes(text).translate(_BLANKED)


_BLANKED = bytes.maketrans(b"\r\n", b"  ")


class TooLong:
    """A message of more than `MAX_MESSAGE_BYTES`, of which only the ends are kept."""

    def __init__(self, begun: Buffer) -> None:
        self._first = bytes(begun[:EDGE_BYTES])
        self._last = bytes(begun[-EDGE_BYTES:])

    def add(self, more: Buffer) -> None:
        """Take what follows."""
        self._last = (self._last + bytes(more[-EDGE_BYTES:]))[-EDGE_BYTES:]

    @property
    def first(self) -> bytes:
        """Its begin."""
        return self._first

    @property
    def last(self) -> bytes:
        """Its end."""
        return self._last

    @cached_property
    def _fields(self) -> Parts:
        return first_parts_of(self._first)

    @property
    def is_request(self) -> bool:
        """Return whether it asks for something, or is a notification; else it is an answer."""
        return "method" in self._fields

    @property
    def id(self) -> Raw | None:
        """The id of the request that it is, or answers; None if it cannot be found."""
        found = _ID_AT_END.search(self._last)
        return self._fields.get("id", Raw(found[1]) if found else None)

    def answer(self, id: Raw | None = None) -> bytes | None:
        """Return the error that answers the request that it is, or the one that it answers; None without an
        id, for which `id` stands in."""
        known = self.id or id
        return None if known is None else error_answer(known, TOO_LONG)


def longer(begun: bytearray | TooLong, more: Buffer, limit: int) -> bytearray | TooLong:
    """Add to a message that is kept up to `limit` bytes."""
    if isinstance(begun, bytearray):
        begun += more
        return TooLong(begun) if len(begun) > limit else begun
    begun.add(more)
    return begun


def line_of(message: Mapping[str, Any]) -> bytes:
    """Return a message of ours as a line."""
    return dumps(message) + b"\n"


def error_answer(id: Raw, message: str, code: int = UNANSWERED) -> bytes:
    """Return the message that answers a request with an error of the gateway."""
    error = {"code": code, "message": message}
    return dumps({"jsonrpc": "2.0", "id": id, "error": error})
