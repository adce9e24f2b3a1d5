"""Excerpts: the words around those that a search has found, with these marked. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fdstore.model.records import Record
from fdstore.text.words import MAX_TEXT_CHARS, is_unspaced, query_words

EXCERPT_CHARS = 200
"""The characters of an excerpt, about."""

BEFORE_CHARS = 50
"""Characters of them before the first mark, at most."""

MAX_MARKS = 50


class WordExcerpt(Record, frozen=True, kw_only=True):
    """A part of a text on one line, with "…" where more of it is left out; `marks` are the places in `text`
    of the words that were looked for, each from a character to before another one."""

    text: str = ""
    marks: tuple[tuple[int, int], ...] = ()

    @property
    def parts(self) -> Iterator[tuple[str, bool]]:
        """Its text in parts, each with whether it is marked.

        >>> list(WordExcerpt(text="a bad day", marks=((2, 5),)).parts)
        [('a ', False), ('bad', True), (' day', False)]
        """
        done = 0
        for start, end in self.marks:
            yield self.text[done:start], False
            yield self.text[start:end], True
            done = end
        yield self.text[done:], False


def excerpt_around(query: str, text: str, chars: int = EXCERPT_CHARS) -> WordExcerpt:
    """Return the part of a text around the words of a query, or words that begin so, cut between words; its
    beginning, if it has none of them.

    >>> excerpt_around("refund", "Count the refunds of May").marks
    ((10, 16),)
    >>> excerpt_around("nine", "one two three four five six seven eight nine ten", 30).text
    '…five six seven eight nine ten'
    """
    line = " ".join(text[:MAX_TEXT_CHARS].split())
    marks = _marks(query, line)
    first = marks[0][0] if marks else 0
    start = max(0, min(first - min(BEFORE_CHARS, chars // 2), len(line) - chars))
    end = min(len(line), start + chars)
    if start and not line[start - 1].isspace():
        after = line.find(" ", start, first)
        start = start if after < 0 else after + 1
    if end < len(line) and not line[end].isspace():
        last = max((stop for _, stop in marks if stop <= end), default=start)
        before = line.rfind(" ", last, end)
        end = end if before < 0 else before
    led = "…" if start else ""
    cut = line[start:end].rstrip()
    shift = len(led) - start
    return WordExcerpt(
        text=led + cut + ("…" if end < len(line) or len(text) > MAX_TEXT_CHARS else ""),
        marks=tuple((begin + shift, stop + shift) for begin, stop in marks if start <= begin and stop <= end),
    )


def _marks(query: str, line: str) -> list[tuple[int, int]]:
    words = sorted(query_words(query), key=len, reverse=True)
    if not words:
        return []
    starts = (re.escape(word) if is_unspaced(word[0]) else rf"(?<![^\W_]){re.escape(word)}" for word in words)
    found = re.finditer("|".join(starts), line, re.IGNORECASE)
    return [each.span() for each, _ in zip(found, range(MAX_MARKS), strict=False)]
