r"""The one reader of JSON from hosts and servers, and the writer of what is changed.

A message is taken apart one level at a time: what is not looked into stays a `msgspec.Raw`, which is written
as it was, with its number formats, escapes and key order.

>>> parts = parts_of(b'{"id": 1.0, "result": {"a": 1e5, "b": "x"}}')
>>> dumps({**parts, "result": {**parts_of(parts["result"]), "b": "y"}})
b'{"id":1.0,"result":{"a":1e5,"b":"y"}}'

Strict JSON is read by msgspec. The rest is read as JavaScript and Python write it: half of a surrogate pair,
NaN and Infinity, control characters in strings, any depth. Strings are then text: a lone surrogate is shown
as `\udXXX`. So it is with messages that are so long that their parts could take many times their memory.

>>> parts_of(rb'{"half": "\ud83d", "n": NaN}')["n"] == Raw(b"NaN"), string_of(rb'"\ud83d"')
(True, '\\ud83d')
"""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from json.decoder import scanstring  # type: ignore[attr-defined]  # how json reads a string
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from fdstore.hosts.gateway.json_scan import BLANKS, Buffer, Split, split, strings, stripped
from fdstore.text.surrogates import show_lone_surrogates

T = TypeVar("T")

Json: TypeAlias = Buffer | Raw
"""One JSON value as text."""
Parts: TypeAlias = dict[str, Raw]
"""The members of a JSON object, each as text."""

SHORT_BYTES = 1 << 18
"""A text of more bytes is split where it stands: msgspec makes any number of parts of it."""

DECODED_BYTES = 1 << 18
"""The bytes of a string that are decoded at once."""

ESCAPE_BYTES = len(rb"\ud83d")
BACKSLASH = ord("\\")

_parts = msgspec.json.Decoder(dict[str, Raw])
_items = msgspec.json.Decoder(list[Raw])
_raw = msgspec.json.Decoder(Raw)
_text = msgspec.json.Decoder(str)
_encoder = msgspec.json.Encoder()

_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_COLON = re.compile(rb"[ \t\n\r]*:")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_HIGH_SURROGATE = re.compile(rb"\\u[dD][89abAB]..\Z")
_NO_CONTROLS = bytes([0x20] * 0x20) + bytes(range(0x20, 0x100))


def parts_of(value: Json) -> Parts | None:
    """Return the members of a JSON object; None for any other value or text. Of two members with one name it
    is the last."""
    found = _decode(_parts, value)
    if found is not None or _is_other(value, b"{"):
        return found
    view = memoryview(value)
    spans = split(view)
    if spans is None or not spans.is_object or not spans.has_ended:
        return None
    try:
        return dict(_members(view, spans))
    except ValueError:
        return None


def items_of(value: Json) -> list[Raw] | None:
    """Return the items of a JSON array; None for any other value or text."""
    found = _decode(_items, value)
    if found is not None or _is_other(value, b"["):
        return found
    view = memoryview(value)
    spans = split(view)
    if spans is None or spans.is_object or not spans.has_ended:
        return None
    return [Raw(stripped(view[begin:end])) for begin, _, end in spans.spans]


def first_parts_of(begin: Json) -> Parts:
    """Return the members of an object of which only the begin is there; the last may be incomplete."""
    view = memoryview(begin)
    spans = split(view)
    if spans is None or not spans.is_object:
        return {}
    try:
        return dict(_members(view, spans))
    except ValueError:
        return {}


def string_of(value: Json) -> str | None:
    """Return the value of a JSON string; None for any other value or text."""
    found = _decode(_text, value)
    if found is not None or not is_string(value):
        return found
    try:
        return b"".join(decoded(value)).decode()
    except ValueError:
        return None


def is_string(value: Json) -> bool:
    """Return whether a value is a string, which may hold what is no text."""
    return bytes(memoryview(value)[:1]) == b'"'


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
    """Return the value of a JSON text. Raises `ValueError`, also for one that is nested too deeply, and for a
    number that Python does not read."""
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return json.loads(show_lone_surrogates(bytes(value)), strict=False)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def exact_value_of(value: Json) -> Any:
    """Return the value of a JSON text so that two are equal only if they are the same JSON: no number is
    rounded, or equal to a boolean. Raises `ValueError` as `value_of`, and for two members with one name.

    >>> exact_value_of(b'{"a": 1.0}') == exact_value_of(b'{"a":1}')
    True
    >>> exact_value_of(b"[1]") == exact_value_of(b"[true]")
    False
    """
    try:
        return json.loads(
            show_lone_surrogates(bytes(value)),
            strict=False,
            parse_int=_exact_number,
            parse_float=_exact_number,
            parse_constant=_exact_number,
            object_pairs_hook=_distinct,
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _exact_number(literal: str) -> tuple[Decimal | str]:
    """Return a number in a form that equals no boolean, string or other number."""
    try:
        number = Decimal(literal)
    except InvalidOperation:  # its exponent is too large
        return (literal,)
    return (number,) if number.is_finite() else (literal,)


def _distinct(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("two members have one name")
    return found


def is_json(value: Json) -> bool:
    """Return whether a text can be read."""
    view = memoryview(value)
    return _is_strict(view) or _is_strict(_as_strict(view))


def _is_strict(text: Buffer) -> bool:
    try:
        _raw.decode(text)
    except RecursionError:
        return True  # whether its brackets fit is seen when it is split
    except msgspec.DecodeError:
        return False
    return True


def _as_strict(view: memoryview) -> bytes:
    """Return a text of the same structure in strict JSON, with other values in place of what is not."""
    text = bytes(view).translate(_NO_CONTROLS)
    if b"\\u" in text:
        text = text.replace(b"\\\\", b"  ")
        text = _SURROGATE.sub(rb"\\u0030", text)
    text = text.replace(b"NaN", b"0")
    return text.replace(b"Infinity", b"0")


def is_utf8(value: Json) -> bool:
    view = memoryview(value)
    decoder = getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(view), DECODED_BYTES):
            decoder.decode(view[start : start + DECODED_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def decoded(value: Json, piece_bytes: int = DECODED_BYTES) -> Iterator[bytes]:
    """Yield the text of a JSON string in UTF-8, in pieces of whole characters. Raises `ValueError` for one
    that is none."""
    literal = stripped(memoryview(value))
    if len(literal) < 2 or literal[0] != ord('"') or literal[-1] != ord('"'):
        raise ValueError("not a JSON string")
    literal = literal[1:-1]
    start = 0
    while start < len(literal):
        piece = bytes(literal[start : _whole_end(literal, start, start + piece_bytes)])
        yield _decoded_piece(piece)
        start += len(piece)


def _whole_end(literal: memoryview, start: int, end: int) -> int:
    """Return the last position up to `end` at which no character, escape, or pair of escapes is cut. All that
    precedes `start` is whole."""
    if end >= len(literal):
        return len(literal)
    while literal[end] & 0xC0 == 0x80 and end > start:
        end -= 1
    for at in range(end - 1, max(start, end - ESCAPE_BYTES), -1):
        if literal[at] == BACKSLASH:
            if _begins_escape(literal, start, at):
                size = ESCAPE_BYTES if literal[at + 1] == ord("u") else 2
                end = min(end, at) if at + size > end else end
            break
    pair = end - ESCAPE_BYTES
    if pair > start and _HIGH_SURROGATE.match(literal[pair:end]) and _begins_escape(literal, start, pair):
        return pair
    return end if end > start else len(literal)  # what has no end is no text, and is refused


def _begins_escape(literal: memoryview, start: int, at: int) -> bool:
    """Return whether a backslash is not itself escaped."""
    before = bytes(literal[start:at])
    return (len(before) - len(before.rstrip(b"\\"))) % 2 == 0


def _decoded_piece(piece: bytes) -> bytes:
    quoted = b'"' + piece + b'"'
    try:
        return _text.decode(quoted).encode()
    except msgspec.DecodeError:
        text, end = scanstring(quoted.decode(), 1, False)
        if end != len(quoted.decode()):
            raise ValueError("not a JSON string") from None
        return bytes(text.encode("utf-8", "backslashreplace"))


def dumps(value: object) -> bytes:
    """Return a value as JSON text. Instances of `Raw` in it are written as they are."""
    return b"".join(_pieces(value))


def encode(value: object) -> Raw:
    """Return a value as JSON text that can be a part of another."""
    return Raw(dumps(value))


def _pieces(value: object) -> Iterator[bytes | Raw]:
    match value:
        case Raw():
            yield value
        case Mapping():
            mark = b"{"
            for name, each in value.items():
                yield mark + _string(name) + b":"
                yield from _pieces(each)
                mark = b","
            yield b"}" if mark == b"," else b"{}"
        case list() | tuple():
            mark = b"["
            for each in value:
                yield mark
                yield from _pieces(each)
                mark = b","
            yield b"]" if mark == b"," else b"[]"
        case str():
            yield _string(value)
        case _:
            yield _encoder.encode(value)


def _string(text: str) -> bytes:
    try:
        return _encoder.encode(text)
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can say
        return json.dumps(text).encode()


def is_null(value: Json) -> bool:
    return len(value) <= SHORT_BYTES and bytes(value).strip() == b"null"


def _decode(decoder: msgspec.json.Decoder[T], value: Json) -> T | None:
    """Return the value of a short text in strict JSON; None for what is to be read otherwise."""
    if len(value) > SHORT_BYTES:
        return None
    try:
        return decoder.decode(value)
    except _REFUSALS:
        return None


def _is_other(value: Json, opening: bytes) -> bool:
    """Return whether a short text does not begin as it has to."""
    return len(value) <= SHORT_BYTES and bytes(value).lstrip(BLANKS)[:1] != opening


def _members(view: memoryview, found: Split) -> Iterator[tuple[str, Raw]]:
    """Yield the members of an object. Raises `ValueError` for what is none."""
    for begin, colon, end in found.spans:
        if not colon:
            raise ValueError("a member without a colon")
        yield _name_of(stripped(view[begin:colon])), Raw(stripped(view[colon + 1 : end]))


def _name_of(literal: memoryview) -> str:
    """Return the name of a member as it is, so that it can be written again."""
    try:
        return _text.decode(literal)
    except msgspec.DecodeError:
        quoted = bytes(literal).decode()
        name, end = scanstring(quoted, 1, False)
        if not quoted.startswith('"') or end != len(quoted):
            raise ValueError("a member without a name") from None
        return str(name)


def map_strings(value: Json, change: Callable[[str], str], mark: re.Pattern[bytes]) -> Raw:
    """Return a JSON text with `change` applied to each string with a `mark` in its JSON that is not a key of
    an object. A string that `change` returns as it was keeps its escapes."""
    view = memoryview(value)
    pieces: list[Buffer] = []
    kept = 0
    for start, end in strings(view):
        literal = view[start:end]
        if not mark.search(literal) or _COLON.match(view, end):
            continue
        before = string_of(literal)
        if before is None:
            continue
        after = change(before)
        if after != before:
            pieces += [view[kept:start], _string(after)]
            kept = end
    return Raw(b"".join([*pieces, view[kept:]]))


def indented(value: object) -> str:
    """Return a value as indented JSON with a line break at its end, for a file that people read."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
