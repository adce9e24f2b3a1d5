"""The words that differ between two lines, for the page of a diff.

    width = 30 px      ->      "30", "40"
    width = 40 px

What both lines begin and end with is found first, in one pass. What is left is compared word by word if it
is short, and is else one change, so that the work for a line has a bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, takewhile

Span = tuple[int, int]
"""Where a change begins and ends in a line, as offsets."""

MAX_WORDS = 60
"""More words of a line, between what it begins and ends with in both, are not compared one by one."""

ALIKE = 0.3
"""Lines that share a smaller part of their characters are different lines, not changed ones."""

_WORD = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\w+|\s+|.", re.DOTALL)


def changed_words(old: str, new: str) -> tuple[list[Span], list[Span]]:
    """Return what differs in both lines; nothing if they have little in common.

    >>> changed_words("width = 30 px", "width = 40 px")
    ([(8, 10)], [(8, 10)])
    >>> changed_words("one two", "three")
    ([], [])
    """
    a, b = _WORD.findall(old), _WORD.findall(new)
    head = _shared(a, b)
    tail = _shared(a[head:][::-1], b[head:][::-1])
    middles = a[head : len(a) - tail], b[head : len(b) - tail]
    changes = [(0, len(middles[0]), 0, len(middles[1]))]
    if max(map(len, middles)) <= MAX_WORDS:
        matcher = SequenceMatcher(None, *middles, autojunk=False)
        changes = [ends for kind, *ends in matcher.get_opcodes() if kind != "equal"]  # type: ignore[misc]
    of_old = _spans(a, [(head + first, head + last) for first, last, _, _ in changes])
    of_new = _spans(b, [(head + first, head + last) for _, _, first, last in changes])
    same = len(old) + len(new) - sum(last - first for first, last in (*of_old, *of_new))
    return (of_old, of_new) if same >= ALIKE * (len(old) + len(new)) else ([], [])


def _shared(a: Sequence[str], b: Sequence[str]) -> int:
    """Return how many words both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def _spans(words: Sequence[str], ranges: Iterable[tuple[int, int]]) -> list[Span]:
    """Return the offsets of ranges of words; what has no more than blanks between is one."""
    at, text = [0, *accumulate(map(len, words))], "".join(words)
    found: list[Span] = []
    for first, last in ranges:
        if first == last:
            continue
        if found and not text[found[-1][1] : at[first]].strip():
            found[-1] = found[-1][0], at[last]
        else:
            found.append((at[first], at[last]))
    return found
