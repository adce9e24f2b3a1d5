"""Decode enough of a JSON document to describe it, and count the items of its large arrays without decoding.

A value that is small is decoded. Of a large array or object the parser only finds where each item begins and
ends (`msgspec.Raw`), five times as fast as decoding it; some items, spread evenly, are decoded by the same
rule with a share of the bytes. So the time for a document of some megabytes is some milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

DECODED_BYTES = 150_000
"""About how much of a document is decoded; a shorter one is decoded whole."""

MAX_COMMAS = 200_000
"""A document with more commas may have as many items, which are found faster by decoding all."""

DECODED_DEPTH = 10
"""The depth of a large document below which nothing is decoded."""

MIN_ITEMS, MAX_ITEMS = 20, 2000
"""The least and most decoded items of a large array, as their size allows; of large ones only parts."""

MAX_KEYS = 200
"""So many keys of a large object are decoded."""

_SMALL_BYTES = 200

T = TypeVar("T")

REFUSALS = (msgspec.DecodeError, RecursionError, UnicodeError)

_items = msgspec.json.Decoder(list[Raw])
_entries = msgspec.json.Decoder(dict[str, Raw])
_lines = msgspec.json.Decoder(Raw)


class PartOfArray(list[Any]):
    """Some items of an array, in order; it has `total`."""

    total: int = 0


class PartOfObject(dict[str, Any]):
    """Some keys of an object with their values; it has `total`."""

    total: int = 0


def decode_part(document: bytes) -> list[Any]:
    """Return the value of a JSON document, alone in a list, its large arrays and objects as `PartOfArray` and
    `PartOfObject`; nothing if it is none.

    >>> [numbers] = decode_part(b"[" + b"1000001," * 50_000 + b"0]")
    >>> numbers.total, numbers[:2]
    (50001, [1000001, 1000001])
    """
    try:
        if document.count(b",") > MAX_COMMAS:
            return [_thinned(msgspec.json.decode(document), 1)]
        return [_decode(document, DECODED_BYTES, 1)]
    except REFUSALS:
        return []


def decode_lines(lines: bytes, count: int) -> PartOfArray | None:
    """Return the documents of lines with one each; of many some, spread evenly, as of an array. None if a
    line is no document, or there are not `count`.

    >>> decode_lines(b'{"a": 1}\\n[2]\\n', 2), decode_lines(b'{"a": 1}\\n2}\\n', 2)
    ([{'a': 1}, [2]], None)
    """
    try:
        found = _lines.decode_lines(lines)
        return _some(found, len(lines), DECODED_BYTES, 1) if len(found) == count else None
    except REFUSALS:
        return None


def _some(items: list[Raw], size: int, room: int, depth: int) -> PartOfArray:
    """Return items of an array that has this size, about `room` bytes of them."""
    fitting = len(items) * room // max(size, 1)
    chosen = _spread(items, min(max(fitting, MIN_ITEMS), MAX_ITEMS) if size > room else len(items))
    array = PartOfArray(_decode_each(chosen, room, depth))
    array.total = len(items)
    return array


def _thinned(value: Any, depth: int) -> Any:
    """Return a value that was decoded, with some of the items and keys of what is large."""
    match value:
        case list() if len(value) > MAX_ITEMS or depth > 1:
            some = _spread(value, MAX_ITEMS if depth == 1 else MIN_ITEMS)
            array = PartOfArray(_thinned(each, depth + 1) for each in some if depth < DECODED_DEPTH)
            array.total = len(value)
            return array
        case list():
            return [_thinned(each, depth + 1) for each in value]
        case dict():
            entries = _spread(list(value.items()), MAX_KEYS)
            part = PartOfObject(
                (key, _thinned(each, depth + 1)) for key, each in entries if depth < DECODED_DEPTH
            )
            part.total = len(value)
            return part
    return value


def _decode(value: bytes | Raw, room: int, depth: int) -> Any:
    """Return a value; of a large one about `room` bytes are decoded."""
    data = memoryview(value)
    if len(data) <= room:
        return msgspec.json.decode(data)
    match bytes(data[:1]) if depth > 1 else bytes(data).lstrip(b" \t\n\r")[:1]:
        case b"[":
            return _some(_items.decode(data), len(data), room, depth)
        case b"{":
            entries = _entries.decode(data)
            keys = _spread(list(entries), MAX_KEYS)
            values = _decode_each([entries[key] for key in keys], room, depth)
            part = PartOfObject(zip(keys, values, strict=False))
            part.total = len(entries)
            return part
    return msgspec.json.decode(data)


def _spread(found: list[T], count: int) -> list[T]:
    """Return at most `count` of what was found, spread evenly."""
    count = min(count, len(found))
    return [found[number * len(found) // count] for number in range(count)]


def _decode_each(values: Sequence[Raw], room: int, depth: int) -> list[Any]:
    """Return values that share `room`; none of what lies too deep."""
    if depth >= DECODED_DEPTH:
        return []
    large = sum(1 for value in values if len(memoryview(value)) > _SMALL_BYTES)
    share = max(room // max(large, 1), _SMALL_BYTES)
    return [_decode(value, share, depth + 1) for value in values]
