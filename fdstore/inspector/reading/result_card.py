"""Results of tool calls, and prompts, as cards: what the elements in them say, in words for people. Pure.

A model reads `<fd_result fd="fd:3" pages="9" ...>`; a person reads "fd:3, stored: 9 pages", its name, how
many lines it has, and its beginning. What a call did is known from the facts of its result; texts, and sizes
that are not among the facts, are read from the elements.
"""

from __future__ import annotations

from collections.abc import Iterator

from fdstore.elements.read import ReadElement, read_parts
from fdstore.elements.result_facts import (
    NO_FACTS,
    ErrorSummary,
    ProcessSummary,
    ResultFacts,
    SearchSummary,
    ShownPart,
    StoredContent,
)
from fdstore.inspector.reading.describe_result import describe_result
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import Record

MESSAGE_OF_TOOLS = "fd_result"
"""The element whose message only says which tools a model can use."""

LABELS = {
    "source": "name",
    "file_path": "file",
    "program": "program",
    "total_lines": "lines in all",
    "total_chars": "characters",
    "tokens": "tokens",
    "lines_searched": "lines searched",
    "shown": "hits shown",
    "more": "goes on at",
    "count": "listed",
    "next": "goes on at",
    "state": "state",
    "exit_code": "exit code",
    "stderr_fd": "standard error",
    "tee_fds": "copies",
    "in_fd": "input",
    "calls": "calls",
    "seconds": "seconds of its own",
}
"""The names that a card gives to the attributes of an element."""

IN_WORDS = {"fd_error": set(LABELS), "process_result": {"state", "exit_code"}, "fd_list": {"total"}}
"""Attributes that are in the words of an element already."""


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
    parts = read_parts(entry.text)
    if not any(isinstance(part, ReadElement) for part in parts):
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


def _cards_of(element: ReadElement, facts: ResultFacts, missing: int) -> Iterator[Card]:
    """Yield the card of an element, and those of elements in it."""
    if not describe_result(facts):
        facts = _facts_of(element)
    preview, tail = element.child("preview"), element.child("tail")
    said = element.child("message")
    message = "" if said is None or element.name == MESSAGE_OF_TOOLS else said.body
    body = element.body if preview is None else preview.body
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
        rows=tuple(_rows(element)),
        message=message if facts.error is None else facts.error.message or message,
        body=body,
        chars=len(body) + (0 if element.is_whole else missing),
        tail="" if tail is None else tail.body,
        is_error=facts.error is not None,
    )
    for child in element.children:
        if child.name not in ("message", "preview", "tail"):
            yield from _cards_of(child, NO_FACTS, missing)


def _rows(element: ReadElement) -> Iterator[tuple[str, str]]:
    values = element.attributes
    skipped = IN_WORDS.get(element.name, set())
    for name, label in LABELS.items():
        if name in skipped or name not in values or (name == "total_chars" and element.name == "fd_result"):
            continue
        value = values[name]
        if name == "total_lines" and "lines" in values and element.name == "fd_result":
            value = f"{value}, {values['lines']} shown"
        yield label, value


def _facts_of(element: ReadElement) -> ResultFacts:
    """Return the facts of an element of which only the text is known."""
    values = element.attributes
    fd = values.get("fd", "")
    match element.name:
        case "fd_result" if values.get("kind") == "bytes":
            size, media_type = _number(values.get("size_bytes")), values.get("media_type", "")
            stored = StoredContent(fd=fd, kind="bytes", size_bytes=size, media_type=media_type)
            return ResultFacts(stored=(stored,))
        case "fd_result":
            pages, chars = _number(values.get("pages")), _number(values.get("total_chars"))
            return ResultFacts(stored=(StoredContent(fd=fd, pages=pages, chars=chars),))
        case "fd_content":
            page = values.get("page")
            part = ShownPart(
                fd=fd,
                page="all" if page == "all" else _number(page) or None,
                pages=_number(values.get("pages")),
                lines=values.get("lines", ""),
                media_type=values.get("media_type", ""),
            )
            return ResultFacts(shown=(part,))
        case "fd_search":
            found = SearchSummary(
                fd=fd, pattern=values.get("pattern", ""), matches=_number(values.get("matches"))
            )
            return ResultFacts(search=found)
        case "fd_list":
            return ResultFacts(listed=_number(values.get("total")))
        case "process_result" if values.get("process") and (state := values.get("state")) in ENDED:
            code = values.get("exit_code")
            process = ProcessSummary(
                process=values["process"],
                state=state,
                exit_code=None if code is None else _number(code),
                reason=values.get("reason", ""),
                fd=fd,
            )
            return ResultFacts(processes=(process,))
        case "fd_error":
            return ResultFacts(error=ErrorSummary(type=values.get("type", ""), fd=fd))
    return NO_FACTS


def _number(text: str | None) -> int:
    """Return the number that an attribute has; 0 if it has none."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 16 else 0
