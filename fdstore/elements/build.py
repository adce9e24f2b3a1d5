r"""Build an element: its attributes escaped, its body raw but for what could be a tag of ours.

The one hard idea: bodies are raw, so that a model reads exactly what is stored, and yet no body can forge a
frame. Only a `<` that could begin one of our own tags is replaced, by `&lt;`; the outermost element then has
`escaped="true"`. `elements.look_alikes` defines such tags.

A `Rendered` is safe by construction, so it may be nested in another element unchanged. It carries its facts:
the function that builds an element knows what it says, and nothing reads it again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from fdstore.elements.look_alikes import LIKE_LESS_THAN, escape_look_alikes
from fdstore.elements.result_facts import NO_FACTS, ResultFacts, join_facts
from fdstore.text.layout import show_controls

Attribute = str | int | bool | None

_PLAIN = re.compile(r"[\w .:~/-]*", re.ASCII)
"""Most values of attributes, which are shown as they are."""

_LIKE_LESS = {char: f"&#x{ord(char):x};" for char in LIKE_LESS_THAN}
_XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"} | _LIKE_LESS)


class Rendered(msgspec.Struct, frozen=True):
    """A whole element, built by `element`.

    text        what the model sees
    nested      the element inside another, without the mark `escaped`, which only the outermost has
    is_escaped  whether its body is
    facts       what it says
    """

    text: str
    nested: str
    is_escaped: bool
    facts: ResultFacts

    def __str__(self) -> str:
        return self.text


def element(
    name: str,
    attributes: Sequence[tuple[str, Attribute]] = (),
    body: str | None = None,
    children: Sequence[Rendered] = (),
    facts: ResultFacts = NO_FACTS,
) -> Rendered:
    r"""Build an element around a raw `body` or around `children`, whose facts it has too; with neither, an
    empty tag.

    >>> print(element("preview", [("lines", "1-1"), ("page", None)], "a <b> and an <fd_list>"))
    <preview lines="1-1" escaped="true">
    a <b> and an &lt;fd_list>
    </preview>
    """
    opening = name
    for key, value in attributes:
        if value is not None:
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            opening += f' {key}="{shown if _PLAIN.fullmatch(shown) else escape_attribute(shown)}"'
    if body is None and not children:
        return Rendered(f"<{opening}/>", f"<{opening}/>", False, facts)
    if body is None:
        inside = "\n".join(child.nested for child in children)
        is_escaped = any(child.is_escaped for child in children)
        facts = join_facts(facts, *(child.facts for child in children))
    else:
        inside, escapes = escape_look_alikes(body)
        is_escaped = escapes > 0
    nested = f"<{opening}>\n{inside}\n</{name}>"
    text = f'<{opening} escaped="true">\n{inside}\n</{name}>' if is_escaped else nested
    return Rendered(text, nested, is_escaped, facts)


def escape_attribute(value: str) -> str:
    """Return the value of an attribute as it stands between its quotes."""
    return show_controls(value, keep="").translate(_XML)
