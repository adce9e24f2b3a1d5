r"""Find what a search without a match may have meant: the same in another case, or a similar word.

    conection  ->  co.?ection | con.ection | cnoection | ...  ->  connection

A word is similar if one letter is replaced, left out or added, or two are swapped. All words similar to one
are one pattern of RE2, so looking for them takes linear time, however many words a text has.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import Any

from fdstore.errors import InvalidArgument
from fdstore.model.records import Record
from fdstore.text.pattern import Data, LineMatch, Pattern, compile_line_pattern
from fdstore.text.search import Scan

MIN_CHARS, MAX_CHARS = 5, 40
"""The words that are compared; shorter ones are like too many others."""

MAX_CANDIDATES = 1000
"""The places of a text that are looked at; most are the word that was looked for."""

_WORD = re.compile(r"[^\W\d](?:[^\W\d]|[ -])*[^\W\d]")
_EDGES = re.compile(r"\A[\W\d]+|[\W\d]+\Z")
_AROUND_BYTES = 4 * (MAX_CHARS + 2)


class NearMiss(Record, frozen=True, kw_only=True):
    """What a text has instead of a match: how many lines match without regard to case, or a similar word; 0
    and "" for nothing."""

    ignoring_case: int = 0
    word: str = ""


class NearMisses:
    """Looks for near misses in a text that is fed as to a `Scan`, for a pattern that does not match in it.

    >>> near = NearMisses("conection", ignore_case=False)
    >>> near.feed(b"a lost connection\\n")
    >>> near.finish()
    NearMiss(ignoring_case=0, word='connection')
    """

    def __init__(self, pattern: str, *, ignore_case: bool) -> None:
        self._words = _WordFinder(pattern)
        self._scan = Scan(Pattern(pattern, ignore_case=True), [self._words])
        self.can_be = not ignore_case or not self._words.full
        """Whether there may be any."""

    def feed(self, data: bytes) -> None:
        """Look at the next bytes."""
        self._scan.feed(data)

    def finish(self) -> NearMiss:
        """End the text, and return what it has."""
        self._scan.finish()
        matches = self._scan.matches
        return NearMiss(ignoring_case=matches, word="" if matches else self._words.found)


class _WordFinder:
    """Finds the first word that is like one, in the lines without a match."""

    def __init__(self, word: str) -> None:
        self.found = ""
        self._candidates = MAX_CANDIDATES
        self._like: Any = None
        if MIN_CHARS <= len(word) <= MAX_CHARS and _WORD.fullmatch(word):
            with suppress(InvalidArgument):  # it is too large
                forms = _forms_like(word)
                self._like = compile_line_pattern(rf"(?m)(?:^|\W)(?:{forms})(?:$|\W)", ignore_case=True)
                self._exactly = re.compile(rf"(?<!\w)(?:{forms})(?!\w)", re.IGNORECASE)

    @property
    def full(self) -> bool:
        return self._like is None

    def passed(self, data: Data, start: int, end: int, line: int) -> None:
        if self._like is None:
            return
        for match in islice(self._like.finditer(data, start, end), self._candidates):
            self._candidates -= 1
            # for RE2 a letter beyond ASCII is none of a word, so this may be a part of one
            first, last = match.span()
            around = _decoded(data[max(first - _AROUND_BYTES, start) : min(last + _AROUND_BYTES, end)])
            words = (_EDGES.sub("", each[0]) for each in self._exactly.finditer(around))
            self.found = next(filter(_WORD.fullmatch, words), "")
            if self.found:
                break
        if self.found or not self._candidates:
            self._like = None

    def hit(self, data: Data, found: LineMatch, line: int) -> None:
        self._like = None


def _decoded(data: Data) -> str:
    return data.decode("utf-8", "ignore")


def _forms_like(word: str) -> str:
    """Return the pattern of the words that are like one. It matches some more, since classes of letters would
    make it slow."""
    last = len(word) - 1
    escaped = [re.escape(char) for char in word]

    def joined(before: int, between: str, after: int) -> str:
        return "".join([*escaped[:before], between, *escaped[after:]])

    forms = [joined(at, ".?", at + 1) for at in range(last + 1)]
    forms += [joined(at, ".", at) for at in range(1, last + 1)]
    forms += [joined(at, escaped[at + 1] + escaped[at], at + 2) for at in range(last)]
    return "|".join(dict.fromkeys(forms))
