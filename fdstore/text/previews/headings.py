"""Documents: the headings of Markdown, underlined ones, and those of chapters, with their lines.

A comment of a configuration file or a line of dashes looks like a heading or its underline. So headings stand
alone: the line before each is blank, and so is the line after most of them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from fdstore.text.previews.line_search import FoundLine, compile_words, find_lines
from fdstore.text.previews.sample import (
    JUDGED_CHARS,
    Outline,
    Sample,
    excerpt,
    first_and_last,
    numbered_excerpt,
    part_of,
)

MIN_HEADINGS = 4
SHOWN = 36
SHOWN_FIRST_LINES = 10
"""The lines with words at the beginning that are shown, so that the text itself says what it is."""

_HEADING_CHARS = 80
MARKS = (
    rb"(?m:^)(?:#{1,6} |```|(?:={3,}|-{3,}|~{3,}|\^{3,}) *\r?(?m:$)"
    rb"|(?:CHAPTER|Chapter|PART|Part|BOOK|Book|APPENDIX|Appendix) )"
)
_MARKS = compile_words(MARKS)
_CHAPTER = re.compile(r"[A-Za-z]+ (?:\d{1,3}|[IVXLC]{1,8}|[A-Z])(?:[.:].{0,100}|)\s*")
_ATX = re.compile(r"(#{1,6}) +\S")


class _Heading(NamedTuple):
    number: int
    level: int
    text: str
    is_alone: bool
    """Whether the line after it is blank."""


def outline(sample: Sample) -> Outline | None:
    """Describe a document with headings."""
    if len(sample.first) < MIN_HEADINGS or sample.script_of:
        return None
    found = find_lines(sample.spans, _MARKS)
    headings = _headings(found.lines)
    if headings is None or len(headings) < MIN_HEADINGS:
        return None
    if 2 * sum(each.is_alone for each in headings) < len(headings):
        return None
    of = found.range_in(sample.total_lines)
    level = max(each.level for each in headings)
    while sum(each.level <= level for each in headings) > SHOWN:
        if sum(each.level < level for each in headings) < MIN_HEADINGS:
            break  # an outline needs more than the title
        level -= 1
    shown = [each for each in headings if each.level <= level] or headings
    kinds = f", of which {len(shown)} are of the upper levels" if len(shown) < len(headings) else ""
    filled = [(number, line) for number, line in enumerate(sample.first, 1) if line.strip()]
    lines = [
        *(numbered_excerpt(number, line) for number, line in filled[:SHOWN_FIRST_LINES]),
        f"{len(headings)} headings{part_of(of)}{kinds}:",
        *first_and_last(
            shown, SHOWN, "headings", lambda each: f"{each.number}:{excerpt(each.text, _HEADING_CHARS)}"
        ),
    ]
    return Outline(kind="outline", of=of, lines=lines)


def _headings(lines: list[FoundLine]) -> list[_Heading] | None:
    """Return the headings; None if some line that begins as one does not stand alone, as comments do."""
    headings: list[_Heading] = []
    underlines: list[str] = []
    is_code = False
    for line in lines:
        text = line.text.rstrip()
        if text.startswith("```"):
            is_code = not is_code
            continue
        if is_code or len(text) > JUDGED_CHARS:
            continue
        start = _start_of(line)
        if atx := _ATX.match(text):
            if not _is_blank_before(line, start):
                return None
            headings.append(_Heading(line.number, len(atx[1]), text, _is_blank_after(line)))
        elif text[0] in "=-~^":
            title, title_start = _line_before(line, start)
            is_title = 0 < len(title) <= len(text) + 1 and "  " not in title and title[0].isalnum()
            if is_title and _is_blank_before(line, title_start):
                if text[0] not in underlines:
                    underlines.append(text[0])
                level = underlines.index(text[0]) + 1
                headings.append(_Heading(line.number - 1, level, title, _is_blank_after(line)))
        elif _CHAPTER.fullmatch(text) and _is_blank_before(line, start):
            headings.append(_Heading(line.number, 1, text, is_alone=True))
    return headings


def _start_of(line: FoundLine) -> int:
    return line.span.data.rfind(b"\n", 0, max(line.end - 1, 0)) + 1


def _line_before(line: FoundLine, start: int) -> tuple[str, int]:
    """Return the line that ends before `start`, and where it begins; "" if there is none."""
    if start < 1:
        return "", 0
    begin = line.span.data.rfind(b"\n", 0, start - 1) + 1
    return line.span.data[begin : start - 1].decode("utf-8", "replace").rstrip(), begin


def _is_blank_before(line: FoundLine, start: int) -> bool:
    return not _line_before(line, start)[0].strip()


def _is_blank_after(line: FoundLine) -> bool:
    return not line.following(1)[0].strip()
