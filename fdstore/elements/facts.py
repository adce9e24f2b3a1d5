"""The facts of a result: its elements without their bodies, and which texts its arguments stood for.

The functions that render elements know them, and the journal keeps them beside the text. So a rendered text
is never read again to learn what a call did. Models never see them.

    {"kind": "result", "call": "toolu_1", "content": "<fd_content ...", "facts":
        {"shown": [{"fd": "fd:1", "page": 3, "pages": 9, "lines": "20-29", ...}]}}

Absent facts are left out, and unknown ones are ignored, so a journal that a newer version writes can be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_type_hints

import msgspec

from fdstore.elements import kinds
from fdstore.elements.element import Element
from fdstore.model.records import Record


class ResultFacts(Record, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """Facts about a result of a tool call, by what its elements are about. What it has several times is a
    tuple; what is not there is None, or ().

    error      the error that is shown
    processes  processes whose state is shown
    stored     contents that are shown as an element in place of the whole
    shown      parts of contents that are shown as they are
    extraction a part that was stored as a new descriptor
    compared   two texts whose differences are shown
    export     a file that was written
    search     a search whose hits are shown
    listed     a list of descriptors
    written    what was written to a descriptor
    closed     a descriptor that was closed
    expanded   selectors of the texts that `{{...}}` stood for in the arguments
    people     what people answered

    >>> from fdstore.elements.kinds import FdError
    >>> ResultFacts(error=FdError(type="not_found", fd="fd:9")).fds
    ('fd:9',)
    """

    error: kinds.FdError | None = None
    processes: tuple[kinds.ProcessResult, ...] = ()
    stored: tuple[kinds.FdResult, ...] = ()
    shown: tuple[kinds.FdContent, ...] = ()
    extraction: kinds.FdExtraction | None = None
    compared: kinds.FdDiff | None = None
    export: kinds.FdFileResult | None = None
    search: kinds.FdSearch | None = None
    listed: kinds.FdList | None = None
    written: kinds.FdWrite | None = None
    closed: kinds.FdClose | None = None
    expanded: tuple[str, ...] = ()
    people: tuple[kinds.PersonReply, ...] = ()

    @property
    def elements(self) -> Iterator[Element]:
        """The elements, errors and processes first."""
        for name, is_several in _FIELDS.values():
            found = getattr(self, name)
            if name == "people":
                found = tuple(each for each in found if each.is_shown)
            yield from found if is_several else () if found is None else (found,)

    @property
    def fds(self) -> tuple[str, ...]:
        """The descriptors that the result is about, each once."""
        return tuple(dict.fromkeys(fd for each in self.elements for fd in each.fds))

    @property
    def repeatable_fds(self) -> tuple[str, ...] | None:
        """The descriptors that must still be there for the same call to show the same again; None if it shows
        no part, no search and no list."""
        if not self.shown and self.search is None and self.listed is None:
            return None
        searched = () if self.search is None else (self.search.fd,)
        return tuple(dict.fromkeys((*(part.fd for part in self.shown), *searched)))


def _fields() -> dict[type[Element], tuple[str, bool]]:
    held = {name: get_args(hint)[0] for name, hint in get_type_hints(ResultFacts).items()}
    return {
        kind: (name, ResultFacts.__struct_defaults__[place] == ())
        for place, (name, kind) in enumerate(held.items())
        if issubclass(kind, Element)
    }


_FIELDS = _fields()
"""Each kind of element -> the field that has it, and whether that has several."""

NO_FACTS = ResultFacts()


def facts_of(element: Element, shown_chars: int | None = None) -> ResultFacts:
    """Return an element as facts; one that was rendered, in so many characters, as they are to be kept.

    >>> facts_of(kinds.FdClose(fd="fd:1"))
    ResultFacts(closed=FdClose(fd='fd:1'))
    """
    field = _FIELDS.get(type(element))
    if field is None:
        return NO_FACTS
    name, is_several = field
    kept = element if shown_chars is None else element.kept(shown_chars)
    found: dict[str, Any] = {name: (kept,) if is_several else kept}
    return ResultFacts(**found)


def in_block(facts: ResultFacts, block: int) -> ResultFacts:
    """Return the facts of a text that is the content block at this position.

    >>> in_block(ResultFacts(stored=(kinds.FdResult(fd="fd:1"),)), 2).stored[0].block
    2
    """
    return facts if not block else move_blocks(facts, {0: block})


def move_blocks(facts: ResultFacts, places: Mapping[int, int]) -> ResultFacts:
    """Return the facts of a result whose content blocks have moved, each to its new place."""
    if not facts.stored:
        return facts
    moved = (msgspec.structs.replace(each, block=places.get(each.block, each.block)) for each in facts.stored)
    return msgspec.structs.replace(facts, stored=tuple(moved))


def join_facts(first: ResultFacts, *others: ResultFacts) -> ResultFacts:
    """Return the facts of a result that has these parts. What a result has only once is that of the first.

    >>> join_facts(ResultFacts(written=kinds.FdWrite(fd="fd:1")), ResultFacts(expanded=("fd:2",))).fds
    ('fd:1',)
    """
    found = [part for part in (first, *others) if part is not NO_FACTS and part != NO_FACTS]
    if len(found) < 2:
        return found[0] if found else NO_FACTS
    several = [*(name for name, is_several in _FIELDS.values() if is_several), "expanded"]
    joined = {name: tuple(each for part in found for each in getattr(part, name)) for name in several}
    return msgspec.structs.replace(found[0], **joined)
