"""Read an element where there is only its text: in messages of a loop or a framework outside fdstore.

What fdstore did itself is in the facts of its results. Two histories of others have no room for them: the
messages of a user's own loop, of which old results are cleared (`tools.clear_messages`), and the results that
Haystack hands on as texts (`integrations.haystack`). The gateway offers our tools under names of its own, and
changes them in messages (`integrations.gateway.rewriting`). And the inspector shows results in words.

Any tool can write the same text; what fdstore renders has its own elements alone.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import msgspec

from fdstore.elements.element import Element, attributes_of
from fdstore.elements.facts import NO_FACTS, ResultFacts, facts_of
from fdstore.elements.kinds import NAMED
from fdstore.model.msgspec_types import prepare

_TAG = re.compile(rf'^<({"|".join(NAMED)})((?: [a-z_]{{1,30}}="[^"<>\n]*")*)(/?)>', re.MULTILINE)
_VALUES = re.compile(r' ([a-z_]{1,30})="([^"]*)"')

prepare(*NAMED.values())


def parse_facts(text: str) -> ResultFacts:
    r"""Return the facts of the element that a text begins with.

    >>> parse_facts('<fd_error type="not_found" fd="fd:9">\n...').error.type
    'not_found'
    """
    tag = _TAG.match(text)
    found = None if tag is None else _element(tag)
    return NO_FACTS if found is None else facts_of(found)


def _element(tag: re.Match[str]) -> Element | None:
    """Return the element of an opening tag; None if its attributes are not those of this element."""
    kind = NAMED[tag[1]]
    values = {name: html.unescape(value) for name, value in _VALUES.findall(tag[2])}
    known = {
        each.name: values[each.name].removeprefix(each.prefix)
        for each in attributes_of(kind)
        if each.name in values
    }
    try:
        return msgspec.convert(known, kind, strict=False)
    except msgspec.ValidationError:
        return None


def split_message(text: str) -> tuple[str, str, str]:
    r"""Split an element into what precedes its message, the message, which fdstore wrote, and what follows,
    which may be stored text. Without a message all of it follows.

    >>> split_message("<fd_close>\n<message>\nClosed.\n</message>\n</fd_close>")
    ('<fd_close>\n', '<message>\nClosed.\n</message>', '\n</fd_close>')
    """
    head, end, rest = text.partition("</message>")
    before, start, message = head.partition("<message>")
    return (before, start + message + end, rest) if end and start else ("", "", text)


class Parsed(msgspec.Struct, frozen=True):
    """An element in a text: its `children`, or else its `body`, in which the tags of our elements are
    escaped. `is_whole`: the text has its end, too."""

    element: Element
    body: str = ""
    children: tuple[Parsed, ...] = ()
    is_whole: bool = True

    def child(self, kind: type[Element]) -> Parsed | None:
        """Return its first child of this kind."""
        return next((each for each in self.children if isinstance(each.element, kind)), None)


MAX_NESTING = 3
"""Elements in elements that are read; deeper ones are the text of their parent."""


def parse(text: str, nesting: int = MAX_NESTING) -> list[str | Parsed]:
    r"""Return the elements of a text that begin at the start of a line, and the texts between them. A text
    that was cut ends in an element that is not whole.

    >>> [intro, found] = parse('See:\n<fd_search fd="fd:1" matches="1">\n3:a <b>\n</fd_search>')
    >>> intro, found.element, found.body
    ('See:', FdSearch(fd='fd:1', matches=1), '3:a <b>')
    """
    return [each for each in _parts(text, nesting) if isinstance(each, Parsed) or each.strip()]


def _parts(text: str, nesting: int) -> Iterator[str | Parsed]:
    done = at = 0
    while (tag := _TAG.search(text, at)) is not None:
        at = tag.end()
        if (element := _element(tag)) is None:
            continue
        yield text[done : tag.start()].removeprefix("\n").removesuffix("\n")
        done = at
        if tag[3]:
            yield Parsed(element)
            continue
        end = text.find(f"</{element.name}>", at)
        inside = text[at:] if end < 0 else text[at:end]
        done = at = len(text) if end < 0 else end + len(f"</{element.name}>")
        inside = inside.removeprefix("\n").removesuffix("\n" if end >= 0 else "")
        parts = parse(inside, nesting - 1) if nesting else []
        children = tuple(each for each in parts if isinstance(each, Parsed))
        if not children or len(children) < len(parts):
            yield Parsed(element, body=inside, is_whole=end >= 0)
        else:
            yield Parsed(element, children=children, is_whole=end >= 0)
    yield text[done:].removeprefix("\n")
