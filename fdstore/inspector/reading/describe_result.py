"""Results of tool calls in words for people."""

from __future__ import annotations

from fdstore.elements.facts import ResultFacts
from fdstore.elements.kinds import FdResult


def describe_result(facts: ResultFacts) -> str:
    """Return in words which descriptor, process or file a result is about, or the type of its error. "" if
    its text is other text, or begins with other text.

    >>> describe_result(ResultFacts(stored=(FdResult(fd="fd:3", pages=2549, total_chars=10200000),)))
    'fd:3, stored: 2,549 pages, 10,200,000 characters'
    """
    first = next(facts.elements, None)
    if first is None or (isinstance(first, FdResult) and first.block):
        return ""
    return ", ".join(filter(None, first.words()))


def describe_people(facts: ResultFacts) -> str:
    """Return in words what people said to a call whose result does not show it."""
    return "; ".join(word for each in facts.people if not each.is_shown for word in each.words())
