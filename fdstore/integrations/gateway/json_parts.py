r"""Replace parts of a JSON text and keep the others byte for byte.

A message is taken apart one level at a time: what is not looked into stays a `msgspec.Raw`, which is encoded
as it was, with its number formats, escapes and key order.

>>> parts = parts_of(b'{"id": 1.0, "result": {"a": 1e5, "b": "x"}}')
>>> bytes(encode({**parts, "result": encode({**parts_of(parts["result"]), "b": "y"})}))
b'{"id":1.0,"result":{"a":1e5,"b":"y"}}'
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Raw

T = TypeVar("T")

Json: TypeAlias = bytes | bytearray | memoryview | Raw
"""One JSON value as text."""
Parts: TypeAlias = dict[str, Raw]
"""The members of a JSON object, each as text."""

_parts = msgspec.json.Decoder(dict[str, Raw])
_items = msgspec.json.Decoder(list[Raw])
_text = msgspec.json.Decoder(str)
_encoder = msgspec.json.Encoder()

_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_COLON = re.compile(r"[ \t\n\r]*+:")


def parts_of(value: Json) -> Parts | None:
    """Return the members of a JSON object; None for any other value or text."""
    return _decode(_parts, value)


def items_of(value: Json) -> list[Raw] | None:
    """Return the items of a JSON array; None for any other value or text."""
    return _decode(_items, value)


def string_of(value: Json) -> str | None:
    """Return the value of a JSON string; None for any other value or text."""
    return _decode(_text, value)


def object_at(parts: Mapping[str, Raw], name: str) -> Parts:
    """Return the members of an object that is a member; {} without one."""
    return parts_of(parts.get(name, b"")) or {}


def text_at(parts: Mapping[str, Raw], *path: str) -> str | None:
    """Return the string at a path of members; None without one.

    >>> text_at(parts_of(b'{"error": {"message": "no"}}'), "error", "message")
    'no'
    """
    *objects, last = path
    for name in objects:
        parts = object_at(parts, name)
    return string_of(parts.get(last, b""))


def value_of(value: Json) -> Any:
    """Return the value of a JSON text. Raises `ValueError`, also for one that is nested too deeply."""
    try:
        return msgspec.json.decode(value)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def encode(value: object) -> Raw:
    """Return a value as JSON text. Instances of `Raw` in it stay as they are."""
    return Raw(_encoder.encode(value))


def is_null(value: Json) -> bool:
    return bytes(value).strip() == b"null"


def _decode(decoder: msgspec.json.Decoder[T], value: Json) -> T | None:
    try:
        return decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def map_strings(value: Json, change: Callable[[str], str]) -> Raw:
    """Return a JSON text with `change` applied to each string that is not a key of an object. A string that
    `change` returns as it was keeps its escapes."""
    text = bytes(value).decode("utf-8")
    pieces: list[str] = []
    end = 0
    for found in _STRING.finditer(text):
        if _COLON.match(text, found.end()):
            continue
        before = _text.decode(found[0].encode())
        after = change(before)
        if after != before:
            pieces += [text[end : found.start()], _encoder.encode(after).decode()]
            end = found.end()
    return Raw("".join([*pieces, text[end:]]).encode())


def indented(value: object) -> str:
    """Return a value as indented JSON with a line break at its end, for a file that people read."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
