"""An element that a model sees, as a Struct: its attributes in order, each with its meaning.

A field with a `description` is an attribute, and shown unless it is None. Its `title` names it for people, in
the cards of the inspector; without one, the words of the element say it already, or nobody needs it. A field
without a description is known beside the element, and never shown; it stands behind the attributes:

    class FdClose(Element, ...):
        name = "fd_close"
        fd: Annotated[str, Meta(description="the descriptor")]        <fd_close fd="fd:1">

`kinds` declares all elements. `build` renders them, `parse` reads them where there is only their text, and
`facts` keeps them without their bodies.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_type_hints

import msgspec

from fdstore.model.records import Record
from fdstore.text.layout import show_controls

MAX_CHARS = 200
"""The characters that facts keep of a string of models and users."""


class Mark(Enum):
    """A rule for the value of an attribute."""

    FOREIGN = "a string of models and users: facts keep it printable, and cut to `MAX_CHARS`"
    ESTIMATE = "an estimated number, shown as ~9000"


class Attribute(NamedTuple):
    """An attribute of an element. `prefix` stands before its value."""

    name: str
    title: str
    description: str
    prefix: str
    is_foreign: bool


class Element(Record, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """One element without its body. The docstring of each kind says what it is, `body` what is in it, and
    `holds` whether that is a text or other elements, as `<message>`."""

    name: ClassVar[str]
    body: ClassVar[str] = ""
    holds: ClassVar[Literal["text", "elements", "either"]] = "text"

    @property
    def fds(self) -> tuple[str, ...]:
        """The descriptors that it is about."""
        fd = getattr(self, "fd", None)
        return (fd,) if fd else ()

    def words(self) -> list[str]:
        """Return in words for people what it is about; "" among them says nothing."""
        return []

    def kept(self, shown_chars: int) -> Self:
        """Return it as facts keep it. `shown_chars` is the length of the whole element."""
        changed = {}
        for name in _foreign(type(self)):
            value = getattr(self, name)
            if value is not None and (kept := show_controls(value[:MAX_CHARS], keep="")) != value:
                changed[name] = kept
        return msgspec.structs.replace(self, **changed) if changed else self


@cache
def attributes_of(kind: type[Element]) -> tuple[Attribute, ...]:
    """Return the attributes of an element, in order."""
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for name in kind.__struct_fields__:
        marks: tuple[Any, ...] = getattr(hints[name], "__metadata__", ())
        for meta in (each for each in marks if isinstance(each, msgspec.Meta) and each.description):
            prefix = "~" if Mark.ESTIMATE in marks else ""
            is_foreign = Mark.FOREIGN in marks
            found.append(Attribute(name, meta.title or "", meta.description or "", prefix, is_foreign))
    return tuple(found)


@cache
def _foreign(kind: type[Element]) -> tuple[str, ...]:
    return tuple(each.name for each in attributes_of(kind) if each.is_foreign)
