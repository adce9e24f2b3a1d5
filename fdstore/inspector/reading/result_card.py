"""Results of tool calls, and prompts, as cards: what the elements in them say, in words for people. Pure.

A model reads `<fd_result fd="fd:3" pages="9" ...>`; a person reads "fd:3, stored: 9 pages", its name, how
many lines it has, and its beginning. What a call did is known from the facts of its result; texts, and all
that is beside the words, are read from the elements.
"""

from __future__ import annotations

from collections.abc import Iterator

from fdstore.elements.element import Element, attributes_of
from fdstore.elements.facts import NO_FACTS, ResultFacts, facts_of
from fdstore.elements.kinds import PARTS, FdResult, MessagePart, PreviewPart, TailPart
from fdstore.elements.parse import Parsed, parse
from fdstore.inspector.reading.describe_result import describe_result
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.model.records import Record


class Card(Record, frozen=True, kw_only=True):
    """An element in words. `words` is what `fdstore log` says of it, without the descriptor `fd` or the
    `process` with which that begins; `rows` are names and values; `message` is a sentence of fdstore, `body`
    a stored text or its beginning, of `chars` characters, and `tail` its end. Texts outside elements have
    only a body."""

    fd: str = ""
    process: str = ""
    words: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    message: str = ""
    body: str = ""
    chars: int = 0
    tail: str = ""
    is_error: bool = False


def make_cards(entry: ConversationEntry) -> tuple[Card, ...]:
    """Return the cards of a result or a prompt, one for each element; none if its text has no element.

    >>> text = '<fd_error type="not_found" fd="fd:9">\\n<message>\\nNo fd:9.\\n</message>\\n</fd_error>'
    >>> [card] = make_cards(ConversationEntry(position=4, kind="result", text=text))
    >>> card.words, card.message
    ('not_found, fd:9', 'No fd:9.')
    """
    parts = parse(entry.text)
    if not any(isinstance(part, Parsed) for part in parts):
        return ()
    missing = max(0, entry.chars - len(entry.text))
    facts = entry.facts
    cards: list[Card] = []
    for part in parts:
        if isinstance(part, str):
            cards.append(Card(body=part, chars=len(part)))
            continue
        cards += _cards_of(part, facts, missing)
        facts = NO_FACTS
    return tuple(cards)


def _cards_of(found: Parsed, facts: ResultFacts, missing: int) -> Iterator[Card]:
    """Yield the card of an element, and those of elements in it."""
    if not describe_result(facts):
        facts = facts_of(found.element)
    preview, tail, said = found.child(PreviewPart), found.child(TailPart), found.child(MessagePart)
    # that of a stored text only says which tools a model can use
    message = "" if said is None or isinstance(found.element, FdResult) else said.body
    body = found.body if preview is None else preview.body
    words = describe_result(facts)
    fd = process = ""
    if facts.processes:
        process, _, words = words.partition(" ")
    elif (begin := words.partition(", "))[0] in facts.fds:
        fd, _, words = begin
    yield Card(
        fd=fd,
        process=process,
        words=words,
        rows=tuple(_rows(found.element)),
        message=message if facts.error is None else facts.error.message or message,
        body=body,
        chars=len(body) + (0 if found.is_whole else missing),
        tail="" if tail is None else tail.body,
        is_error=facts.error is not None,
    )
    for child in found.children:
        if not isinstance(child.element, PARTS):
            yield from _cards_of(child, NO_FACTS, missing)


def _rows(element: Element) -> Iterator[tuple[str, str]]:
    """Yield the attributes that have a title, the name first."""
    named = [each for each in attributes_of(type(element)) if each.title]
    for attribute in sorted(named, key=lambda each: each.title != "name"):
        value = getattr(element, attribute.name)
        if value is None:
            continue
        shown = f"{attribute.prefix}{value}"
        if isinstance(element, FdResult) and attribute.name == "total_lines" and element.lines is not None:
            shown = f"{shown}, {element.lines} shown"
        yield attribute.title, shown
