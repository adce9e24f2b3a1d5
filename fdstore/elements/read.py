"""Read an element where there is only its text: in messages of a loop or a framework outside fdstore.

What fdstore did itself is in `result_facts`. Two histories of others have no room for them: the messages of
a user's own loop, of which old results are cleared (`tools.clear_messages`), and the results that Haystack
hands on as texts (`integrations.haystack`). The gateway offers our tools under names of its own, and changes
them in messages (`integrations.gateway.rewriting`). And the inspector shows results in words (`read_parts`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import msgspec

from fdstore.elements.result_facts import (
    NO_FACTS,
    ErrorSummary,
    ResultFacts,
    SearchSummary,
    ShownPart,
    StoredContent,
)

_OPENING = re.compile(r"<(fd_[a-z]{1,20}) ([^<>]{0,8000})>")
_NAME = r"(?:(?:fd|process|python)_[a-z_]{1,20}|message|preview|tail)"
_TAG = re.compile(rf'^<({_NAME})((?: [a-z_]{{1,30}}="[^"<>\n]*")*)(/?)>', re.MULTILINE)
_VALUES = re.compile(r' ([a-z_]{1,30})="([^"]*)"')
_ATTRIBUTE = re.compile(r'(?<![a-z_])(fd|type)="([^"&]{1,200})"')


def read_facts(text: str) -> ResultFacts:
    r"""Return the facts of the element that a text begins with, as far as they are needed: which descriptor
    it stored, shows or searches, or the type of its error. Any tool can write the same text.

    >>> read_facts('<fd_result fd="fd:3" pages="2" source="bash">\n...').stored[0].fd
    'fd:3'
    >>> read_facts('<fd_error type="not_found" fd="fd:9">\n...').error.type
    'not_found'
    """
    opening = _OPENING.match(text)
    if opening is None:
        return NO_FACTS
    attributes = dict(_ATTRIBUTE.findall(opening[2]))
    fd = attributes.get("fd", "")
    match opening[1]:
        case "fd_result" if fd:
            return ResultFacts(stored=(StoredContent(fd=fd),))
        case "fd_content" if fd:
            return ResultFacts(shown=(ShownPart(fd=fd),))
        case "fd_search" if fd:
            return ResultFacts(search=SearchSummary(fd=fd))
        case "fd_list":
            return ResultFacts(listed=0)
        case "fd_error":
            return ResultFacts(error=ErrorSummary(type=attributes.get("type", "")))
    return NO_FACTS


def split_message(text: str) -> tuple[str, str, str]:
    r"""Split an element into what precedes its message, the message, which fdstore wrote, and what follows,
    which may be stored text. Without a message all of it follows.

    >>> split_message("<fd_close>\n<message>\nClosed.\n</message>\n</fd_close>")
    ('<fd_close>\n', '<message>\nClosed.\n</message>', '\n</fd_close>')
    """
    head, end, rest = text.partition("</message>")
    before, start, message = head.partition("<message>")
    return (before, start + message + end, rest) if end and start else ("", "", text)


class ReadElement(msgspec.Struct, frozen=True):
    """An element in a text: its attributes, and its `children`, or else its `body`, in which the tags of our
    elements are escaped. `is_whole`: the text has its end, too."""

    name: str
    attributes: dict[str, str]
    body: str = ""
    children: tuple[ReadElement, ...] = ()
    is_whole: bool = True

    def child(self, name: str) -> ReadElement | None:
        """Return its first child of this name."""
        return next((each for each in self.children if each.name == name), None)


MAX_NESTING = 3
"""Elements in elements that are read; deeper ones are the text of their parent."""


def read_parts(text: str, nesting: int = MAX_NESTING) -> list[str | ReadElement]:
    r"""Return the elements of a text that begin at the start of a line, and the texts between them. A text
    that was cut ends in an element that is not whole. Any tool can write the same text; what fdstore renders
    has its own elements alone.

    >>> [intro, found] = read_parts('See:\n<fd_search fd="fd:1" matches="1">\n3:a <b>\n</fd_search>')
    >>> intro, found.name, found.attributes, found.body
    ('See:', 'fd_search', {'fd': 'fd:1', 'matches': '1'}, '3:a <b>')
    """
    return [each for each in _parts(text, nesting) if isinstance(each, ReadElement) or each.strip()]


def _parts(text: str, nesting: int) -> Iterator[str | ReadElement]:
    at = 0
    while (tag := _TAG.search(text, at)) is not None:
        yield text[at : tag.start()].removeprefix("\n").removesuffix("\n")
        name, values, empty = tag.groups()
        attributes = {key: html.unescape(value) for key, value in _VALUES.findall(values)}
        at = tag.end()
        if empty:
            yield ReadElement(name, attributes)
            continue
        end = text.find(f"</{name}>", at)
        inside = text[at:] if end < 0 else text[at:end]
        at = len(text) if end < 0 else end + len(f"</{name}>")
        inside = inside.removeprefix("\n").removesuffix("\n" if end >= 0 else "")
        parts = read_parts(inside, nesting - 1) if nesting else []
        children = tuple(each for each in parts if isinstance(each, ReadElement))
        if not children or len(children) < len(parts):
            yield ReadElement(name, attributes, body=inside, is_whole=end >= 0)
        else:
            yield ReadElement(name, attributes, children=children, is_whole=end >= 0)
    yield text[at:].removeprefix("\n")
