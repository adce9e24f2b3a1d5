"""Texts of documents: their pages, sheets, slides or chapters, with the line of each and how it begins.

The text is that of `files/documents`, which writes a mark before each part, as `[page 3]` or
`[sheet Totals]`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from fdstore.text.previews.line_search import FoundLine, compile_words, find_lines
from fdstore.text.previews.sample import Outline, Sample, excerpt, first_and_last, part_of
from fdstore.text.quantities import format_count

SHOWN = 30
_BEGIN_CHARS = 80
_LOOKED_AT_LINES = 6
"""The lines after a mark in which the first with words is looked for."""

STARTS = rb"\A\[(?:(?:page|slide|chapter) 1|sheet [^\n]*)(?: \(hidden\))?\]\r?\n"
_MARKS = compile_words(rb"(?m:^)\[(?:page|slide|chapter|sheet) [^\n]*\]\r?(?m:$)")
_MARK = re.compile(r"\[(page|slide|chapter|sheet) (.+)\]")
_NUMBERED = re.compile(r"([0-9]+)(?: \(hidden\))?")
_FIRST = re.compile(r"1(?: \(hidden\))?")


class _Mark(NamedTuple):
    line: FoundLine
    name: str


def document_parts(sample: Sample) -> Outline | None:
    """Describe the text of a document with marks."""
    found = find_lines(sample.spans, _MARKS)
    first = _MARK.fullmatch(found.lines[0].text) if found.lines else None
    if first is None or found.lines[0].number != 1:
        return None
    unit = first[1]
    if unit != "sheet" and _FIRST.fullmatch(first[2]) is None:
        return None  # a part of a text, in which any line may look like a mark
    marks = [
        _Mark(line, line.text)
        for line in found.lines
        if (mark := _MARK.fullmatch(line.text))
        and mark[1] == unit
        and (unit == "sheet" or _NUMBERED.match(mark[2]))
    ]
    of = found.range_in(sample.total_lines)
    lines = [
        f"{format_count(len(marks), unit)}{part_of(of)}; the line of each, and how it begins:",
        *first_and_last(marks, SHOWN, f"{unit}s", _shown),
    ]
    return Outline(kind="document", of=of, lines=lines)


def _shown(mark: _Mark) -> str:
    begin = ""
    for line in mark.line.following(_LOOKED_AT_LINES):
        if _MARK.fullmatch(line):
            break
        if line.strip():
            begin = f" {excerpt(line.strip(), _BEGIN_CHARS)}"
            break
    return f"{mark.line.number}:{excerpt(mark.name, _BEGIN_CHARS)}{begin}"
