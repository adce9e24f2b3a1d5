r"""Render an element: its attributes escaped, its body raw but for what could be a tag of ours.

The one hard idea: bodies are raw, so that a model reads exactly what is stored, and yet no body can forge a
frame. Only a `<` that could begin one of our own tags is replaced, by `&lt;`; the outermost element then has
`escaped="true"`. `elements.look_alikes` defines such tags.

A `Rendered` is safe by construction, so it may be nested in another element unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from fdstore.elements.element import Element, attributes_of
from fdstore.elements.facts import ResultFacts, facts_of, join_facts
from fdstore.elements.look_alikes import LIKE_LESS_THAN, escape_look_alikes
from fdstore.text.layout import show_controls

_is_plain = re.compile(r"[\w .:~/-]*", re.ASCII).fullmatch
"""Most values of attributes, which are shown as they are."""

_LIKE_LESS = {char: f"&#x{ord(char):x};" for char in LIKE_LESS_THAN}
_XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"} | _LIKE_LESS)


class Rendered(msgspec.Struct, frozen=True):
    """A whole element.

    text        what the model sees
    nested      the element inside another, without the mark `escaped`, which only the outermost has
    is_escaped  whether its body is
    element     it without its body
    children    those in it
    """

    text: str
    nested: str
    is_escaped: bool
    element: Element
    children: Sequence[Rendered] = ()

    @property
    def facts(self) -> ResultFacts:
        """What it says, and those in it."""
        facts = facts_of(self.element, len(self.text))
        return join_facts(facts, *(child.facts for child in self.children)) if self.children else facts

    def __str__(self) -> str:
        return self.text


def render(element: Element, body: str | None = None, children: Sequence[Rendered] = ()) -> Rendered:
    r"""Render an element around a raw `body` or around `children`; with neither, as an empty tag.

    >>> from fdstore.elements.kinds import TailPart
    >>> print(render(TailPart(), "a <b> and an <fd_list>"))
    <tail escaped="true">
    a <b> and an &lt;fd_list>
    </tail>
    """
    opening = element.name
    begins = _BEGINS.get(type(element))
    if begins is None:
        begins = _begins(type(element))
    for begin, value in zip(begins, msgspec.structs.astuple(element), strict=False):
        if value is None:
            continue
        if isinstance(value, str):  # or one of its subclasses, as parsers of HTML return
            value = value if _is_plain(value) else escape_attribute(value)
        elif value is True or value is False:
            value = "true" if value else "false"
        opening += f'{begin}{value}"'
    is_escaped = False
    if body is None and not children:
        text = nested = f"<{opening}/>"
    else:
        if body is None:
            inside = "\n".join(child.nested for child in children)
            is_escaped = any(child.is_escaped for child in children)
        else:
            inside, escapes = escape_look_alikes(body)
            is_escaped = escapes > 0
        nested = f"<{opening}>\n{inside}\n</{element.name}>"
        text = f'<{opening} escaped="true">\n{inside}\n</{element.name}>' if is_escaped else nested
    return Rendered(text, nested, is_escaped, element, children)


_BEGINS: dict[type[Element], tuple[str, ...]] = {}


def _begins(kind: type[Element]) -> tuple[str, ...]:
    return _BEGINS.setdefault(kind, tuple(f' {each.name}="{each.prefix}' for each in attributes_of(kind)))


def escape_attribute(value: str) -> str:
    """Return the value of an attribute as it stands between its quotes."""
    return show_controls(value, keep="").translate(_XML)
