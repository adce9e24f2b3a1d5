r"""Format text for people: the end of a text, indented JSON, visible control characters.

The functions accept every text and never raise because of its content.

JSON is re-indented as TEXT, token by token, and never parsed into values: numbers keep their digits
(`1E+05` stays), keys their order and their duplicates, strings their escapes. A table of legal tokens checks
the grammar, so exactly JSON (RFC 8259) is accepted: no NaN, no trailing comma. There is no recursion and no
regular expression that can backtrack; the time is linear in the output, and the output is bounded, because
indentation alone can turn one megabyte into gigabytes.
"""

from __future__ import annotations

import re

MAX_NESTING = 1000
"""JSON nested deeper than this is not re-indented."""

FIRST_LINE_CHARS = 160

# C0, DEL, C1; line and paragraph separators; bidirectional controls; surrogates; the two code points that XML
# forbids.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def show_controls(text: str, keep: str = "\n\t") -> str:
    r"""Return `text` with every control character except those in `keep` as `\u{..}`, in hexadecimal.

    >>> print(show_controls("\x1b[31mred"))
    \u{1b}[31mred
    """
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(lambda hit: hit[0] if hit[0] in keep else f"\\u{{{ord(hit[0]):x}}}", text)


def first_line(text: str) -> str:
    r"""Return the first line of a text that says something, with single blanks, at most `FIRST_LINE_CHARS`.

    >>> first_line("\n  Find\tthe first error.\nThen stop."), len(first_line("x" * 1000))
    ('Find the first error.', 160)
    """
    line = text[: 10 * FIRST_LINE_CHARS].strip().partition("\n")[0]
    return show_controls(" ".join(line.split()), keep="")[:FIRST_LINE_CHARS]


def show_controls_in_json(text: str) -> str:
    r"""Return one line of JSON with control characters as JSON escapes, so that its value is unchanged.

    >>> print(show_controls_in_json('"\x9b31m"'))
    "\u009b31m"
    """
    return _HIDDEN.sub(lambda hit: f"\\u{ord(hit[0]):04x}", text)


def tail_of(text_end: str, max_chars: int) -> str:
    r"""Return at most the last `max_chars` characters of `text_end`, beginning with a whole line.

    A text that fits is returned whole. A first line that is cut is dropped, unless the tail would then be
    empty.

    >>> tail_of("first line\nsecond\nthird\n", 15)
    'second\nthird\n'
    """
    cut = len(text_end) - max_chars
    if cut <= 0:
        return text_end
    kept = text_end[cut:]
    if text_end[cut - 1] == "\n":
        return kept
    return kept[kept.find("\n") + 1 :] or kept


# Possessive quantifiers, of single characters alone: Python before 3.11.5 matches those of groups wrongly.
_BLANK = r"[ \t\n\r]*+"
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_TOKEN = re.compile(rf'{_BLANK}([{{}}\[\],:"]|{_NUMBER}|true|false|null)')
# A part of a string; nothing follows that could fail, so there is no way back, and it needs little memory.
_IN_A_STRING = re.compile(r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){1,1000}')
_END = re.compile(rf"{_BLANK}\Z")

_VALUE = frozenset('{["-0123456789tfn')
_LEGAL: dict[str, frozenset[str]] = {
    "value": _VALUE,
    "first item": _VALUE | {"]"},
    "item": _VALUE,
    "first key": frozenset('"}'),
    "key": frozenset('"'),
    "colon": frozenset(":"),
    "comma or end": frozenset(",}]"),
}
"""The first characters of the tokens that are allowed in each state."""
_ON_A_NEW_LINE = frozenset({"first item", "item", "first key", "key"})
MAX_PIECES = 1 << 16
"""Then they are joined: as pieces they take many times the memory of their characters."""


LONGEST_REST = 24
"""The most characters that a cut token or escape leaves at the end of what is the beginning of JSON."""


def reindent_json(text: str, indent: int = 2, *, is_cut: bool = False) -> str | None:
    """Return `text` formatted like `json.dumps(..., indent=indent)` if it is one JSON object or array, or
    with `is_cut` the beginning of one; a string that is cut is left out.

    Only blanks outside strings change. Return None if it is not JSON, is a bare string, number or literal,
    is nested deeper than `MAX_NESTING`, or would grow by more than about 32 times.

    >>> print(reindent_json('{"a": [1.0,2e3], "a": {}}'))
    {
      "a": [
        1.0,
        2e3
      ],
      "a": {}
    }
    """
    done: list[str] = []
    pieces: list[str] = []
    closers: list[str] = []
    breaks = ["\n"]  # by depth: the line break with its indentation
    room = 32 * len(text) + (indent + 1) * MAX_NESTING**2  # for line breaks and indentation
    expected, position = "value", 0
    while token := _TOKEN.match(text, position):
        begin, position = token.span(1)
        word = token[1]
        first = word[0]
        if first == '"':
            while part := _IN_A_STRING.match(text, position):
                position = part.end()
            if not text.startswith('"', position):
                break
            position += 1
            word = text[begin:position]
        if len(pieces) > MAX_PIECES:
            done.append("".join(pieces))
            pieces.clear()
        if first not in _LEGAL[expected]:
            return None

        broken = expected in _ON_A_NEW_LINE
        if first in "]}":
            if closers.pop() != first:
                return None
            broken = expected == "comma or end"  # keep [] and {} on one line
        if broken:
            room -= len(breaks[len(closers)])
            if room < 0:
                return None
            pieces.append(breaks[len(closers)])
        pieces.append(word)

        if first in "[{":
            closers.append("]" if first == "[" else "}")
            if len(closers) > MAX_NESTING:
                return None
            if len(breaks) == len(closers):
                breaks.append("\n" + " " * (indent * len(closers)))
            expected = "first item" if first == "[" else "first key"
        elif first == ",":
            expected = "item" if closers[-1] == "]" else "key"
        elif first == ":":
            pieces.append(" ")
            expected = "value"
        elif first == '"' and expected in ("first key", "key"):
            expected = "colon"
        elif closers:
            expected = "comma or end"
        else:
            whole = first in "]}" and _END.match(text, position)
            return "".join([*done, *pieces]) if whole else None
    is_at_end = len(text) - position <= LONGEST_REST
    return "".join([*done, *pieces]) if is_cut and closers and is_at_end else None
