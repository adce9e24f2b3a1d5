r"""Build an element: its attributes escaped, its body raw but for what could be a tag of ours.

The one hard idea: bodies are raw, so that a model reads exactly what is stored, and yet no body can forge a
frame. Only a `<` that could begin one of our own tags is replaced, by `&lt;`; the outermost element then has
`escaped="true"`. `elements.look_alikes` defines such tags.

A `Rendered` is safe by construction, so it may be nested in another element unchanged. It carries its facts:
the function that builds an element knows what it says, and nothing reads it again.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fdstore.elements.look_alikes import LIKE_LESS_THAN, escape_look_alikes
from fdstore.result_facts import NO_FACTS, ResultFacts, join_facts
from fdstore.text.layout import show_controls

Attribute = str | int | bool | None

_ESCAPED = ' escaped="true"'
_LIKE_LESS = {char: f"&#x{ord(char):x};" for char in LIKE_LESS_THAN}
_XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"} | _LIKE_LESS)


class Rendered(msgspec.Struct, frozen=True):
    """A whole element, built by `element`: its opening tag without the brackets, its body (None: an empty
    tag), whether that is escaped, and the facts of what it says."""

    name: str
    opening: str
    body: str | None
    is_escaped: bool
    facts: ResultFacts

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """Return what the model sees."""
        return self._marked(_ESCAPED if self.is_escaped else "")

    @property
    def nested(self) -> str:
        """The element inside another, without the mark `escaped`, which only the outermost has."""
        return self._marked("")

    def _marked(self, mark: str) -> str:
        if self.body is None:
            return f"<{self.opening}/>"
        return f"<{self.opening}{mark}>\n{self.body}\n</{self.name}>"


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
    opening = name + "".join(
        f' {key}="{escape_attribute(value)}"' for key, value in attributes if value is not None
    )
    if body is not None:
        inside, escapes = escape_look_alikes(body)
        return Rendered(name, opening, inside, escapes > 0, facts)
    nested = "\n".join(child.nested for child in children) if children else None
    is_escaped = any(child.is_escaped for child in children)
    return Rendered(name, opening, nested, is_escaped, join_facts(facts, *(each.facts for each in children)))


def escape_attribute(value: str | int | bool) -> str:
    """Return the value of an attribute as it stands between its quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return show_controls(str(value), keep="").translate(_XML)
