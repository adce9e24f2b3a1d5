r"""Positions of the values of a JSON text, so that one of them can be replaced and all else keeps its bytes.

Configurations that people write have comments and trailing commas. `without_comments` puts spaces in their
place, so a position in the plain text is the same position in the original.

>>> text = '{"a": 1, /* why */ "b": [2,]}'
>>> plain = without_comments(text)
>>> {name: text[span.start : span.end] for name, span in members(plain, 0).items()}
{'a': '1', 'b': '[2,]'}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

_QUOTE_OR_BACKSLASH = re.compile(r'["\\]')
_STRING_OR_COMMENT = re.compile(r'"|//|/\*')
_STRING_OR_COMMA = re.compile(r'"|,')
_CLOSING = re.compile(r"[ \t\r\n]*[\]}]")
_NO_BREAK = re.compile(r"[^\r\n]")
_SPACE = re.compile(r"[ \t\r\n]*")
_BOM = "\ufeff"
_decoder = json.JSONDecoder()


class JsonSpan(NamedTuple):
    """A value, and where it starts and ends in the text."""

    start: int
    end: int
    value: Any


def without_comments(text: str) -> str:
    r"""Return a text with spaces for its comments, trailing commas and byte order mark.

    >>> without_comments('[1, "//", // one\n2,]')
    '[1, "//",       \n2 ]'
    """
    plain = _blanked(text, _comments(text))
    return _blanked(plain, _trailing_commas(plain))


def value_at(plain: str, start: int) -> JsonSpan:
    """Return the first value from a position on. Raises `ValueError` if there is none."""
    start = _skip_space(plain, start)
    value, end = _decoder.raw_decode(plain, start)
    return JsonSpan(start, end, value)


def members(plain: str, start: int) -> dict[str, JsonSpan]:
    """Return the values of the object that starts at a position. Raises `ValueError` if it is not one."""
    found: dict[str, JsonSpan] = {}
    at = _skip_space(plain, start + 1)
    while plain[at] != "}":
        name = value_at(plain, at)
        found[name.value] = value = value_at(plain, _skip_space(plain, name.end) + 1)
        at = _after_comma(plain, value.end)
    return found


def items(plain: str, start: int) -> list[JsonSpan]:
    """Return the items of the array that starts at a position. Raises `ValueError` if it is not one."""
    found: list[JsonSpan] = []
    at = _skip_space(plain, start + 1)
    while plain[at] != "]":
        found.append(value_at(plain, at))
        at = _after_comma(plain, found[-1].end)
    return found


def _after_comma(plain: str, at: int) -> int:
    at = _skip_space(plain, at)
    return _skip_space(plain, at + 1) if plain[at] == "," else at


def _skip_space(plain: str, at: int) -> int:
    found = _SPACE.match(plain, at)
    return at if found is None else found.end()


def _comments(text: str) -> Iterator[tuple[int, int]]:
    if text.startswith(_BOM):
        yield 0, len(_BOM)
    at = 0
    while found := _STRING_OR_COMMENT.search(text, at):
        start, at = found.span()
        if found[0] == '"':
            at = _end_of_string(text, at)
            continue
        mark, length = ("\n", 0) if found[0] == "//" else ("*/", 2)
        end = text.find(mark, at)
        if end < 0 and length:
            return  # a comment without an end is none, and no other one has an end
        at = len(text) if end < 0 else end + length
        yield start, at


def _trailing_commas(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    while found := _STRING_OR_COMMA.search(text, at):
        start, at = found.span()
        if found[0] == '"':
            at = _end_of_string(text, at)
        elif _CLOSING.match(text, at):
            yield start, at


def _end_of_string(text: str, at: int) -> int:
    """Return where the string ends that `at` is in."""
    while found := _QUOTE_OR_BACKSLASH.search(text, at):
        if found[0] == '"':
            return found.end()
        at = found.end() + 1
    return len(text)


def _blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text with spaces in these places; line breaks stay."""
    pieces: list[str] = []
    kept = 0
    for start, end in spans:
        pieces += [text[kept:start], _NO_BREAK.sub(" ", text[start:end])]
        kept = end
    return "".join([*pieces, text[kept:]])
