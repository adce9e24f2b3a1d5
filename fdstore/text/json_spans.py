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
from typing import Any, NamedTuple

_STRING = r'"(?:[^"\\]|\\.)*+"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*+|/\*.*?\*/|\A\ufeff", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=[ \t\r\n]*+[\]}}])", re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*+")
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
    return _TRAILING_COMMA.sub(_blank, _COMMENT.sub(_blank, text))


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


def _blank(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else re.sub(r"[^\r\n]", " ", found[0])
