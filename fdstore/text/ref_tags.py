"""Parse a model's text: passages named with `<ref id="NAME">`, and `{{fd:3}}` in its arguments.

A passage is the exact text between `<ref id="NAME">` and its `</ref>`, including inner tags and code fences.
The complete rules:

- A closing tag belongs to the innermost open tag. Passages may nest; each is kept.
- An opening tag without a closing tag is ignored, and so is a closing tag without an opening tag.
- A malformed opening tag (no id, a bad name, mixed quotes) names nothing, but is paired with its closing tag,
  so that the passage around it does not end too early. `<ref .../>` neither opens nor closes.
- Names and the word `ref` are case-sensitive; blanks are allowed after `ref`, around `=` and before `>`.
- Passages are kept to `MAX_NESTING` levels: each level repeats the text inside, so without a bound a
  megabyte of nested tags would become gigabytes.

Both scanners read each character a bounded number of times.
"""

from __future__ import annotations

import re

from fdstore.model.records import Record

MAX_NESTING = 16
"""The maximum nesting depth of passages; deeper ones get no name."""

_NAME = r"[A-Za-z0-9_.-]{1,64}"
# A tag ends at the first ">" and contains no "<": scanning resumes after an unfinished tag.
_TAG = re.compile(r"<ref(?=[\s>])[^<>]*+>|</ref\s*+>")
_OPENING = re.compile(rf"""<ref\s++id\s*+=\s*+(?:"(?P<double>{_NAME})"|'(?P<single>{_NAME})')\s*+>""")
_KEY = r"[^{}\x00-\x1f]"
_PLACEHOLDER = re.compile(
    rf"\{{\{{\s*+(?P<selector>(?:fd[:-][0-9]{{1,16}}|ref:{_NAME})(?:#J/{_KEY}{{0,4096}}?|#[A-Za-z0-9-]{{1,64}})?"
    rf"|name:{_KEY}{{1,5200}}?)\s*+\}}\}}"
)


class Placeholder(Record, frozen=True, kw_only=True):
    """`text[start:end]` stands for the content of `selector`: `fd:3`, `fd:3#L10-20`, `fd:3#J/a`, `ref:plan`.

    `selector` is as written. It may still be invalid (`fd:3#L20-10`, an id that does not exist): the caller
    must report that, because ignoring it would pass braces to a tool.
    """

    start: int
    end: int
    selector: str


def references(text: str) -> list[tuple[str, str]]:
    """Return the name and the exact content of each named passage, in the order of their opening tags.

    >>> references('<ref id="plan">1. <ref id="first">dig</ref></ref>')
    [('plan', '1. <ref id="first">dig</ref>'), ('first', 'dig')]
    """
    found: list[tuple[int, str, int, int]] = []
    still_open: list[tuple[str | None, int, int]] = []
    for tag in _TAG.finditer(text):
        if tag[0].startswith("</"):
            if not still_open:
                continue
            name, opened_at, begin = still_open.pop()
            if name is not None:
                found.append((opened_at, name, begin, tag.start()))
        elif not tag[0].endswith("/>"):
            still_open.append((_name_of(tag[0]), tag.start(), tag.end()))

    found.sort()
    kept: list[tuple[str, str]] = []
    outer_ends: list[int] = []  # where the passages around this one end, outermost first
    for _, name, begin, end in found:
        while outer_ends and outer_ends[-1] < begin:
            outer_ends.pop()
        outer_ends.append(end)
        if len(outer_ends) <= MAX_NESTING:
            kept.append((name, text[begin:end]))
    return kept


def placeholders(text: str) -> list[Placeholder]:
    """Return the placeholders in `text`: `{{fd:3}}`, `{{fd:3#L10-20}}`, `{{ ref:plan }}`.

    Any other double braces are plain text.
    """
    return [
        Placeholder(start=hit.start(), end=hit.end(), selector=hit["selector"])
        for hit in _PLACEHOLDER.finditer(text)
    ]


def _name_of(tag: str) -> str | None:
    match = _OPENING.fullmatch(tag)
    return (match["double"] or match["single"]) if match else None
