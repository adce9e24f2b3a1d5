"""Read the elements of results in scripts and assertions, as a model reads them.

No content can contain an element of fdstore's, so each one that is found was made by fdstore.
"""

from __future__ import annotations

import html
import re

import msgspec


class Element(msgspec.Struct, frozen=True):
    """One element: `found["fd"]` is an attribute, `body` the text between its tags."""

    name: str
    attributes: dict[str, str]
    body: str

    def __getitem__(self, attribute: str) -> str:
        return self.attributes[attribute]


def elements(text: str, name: str) -> list[Element]:
    """Return all elements of one name in a result, or in any text that contains results.

    >>> elements('<fd_write fd="fd:1" chars="3"/>', "fd_write")[0].attributes
    {'fd': 'fd:1', 'chars': '3'}
    """
    pattern = rf'<{re.escape(name)}((?: [a-z_]+="[^"]*")*)(?:/>|>\n(.*?)\n</{re.escape(name)}>)'
    return [
        Element(
            name,
            {key: html.unescape(value) for key, value in re.findall(r' ([a-z_]+)="([^"]*)"', found[1])},
            found[2] or "",
        )
        for found in re.finditer(pattern, text, re.DOTALL)
    ]


def element(text: str, name: str) -> Element:
    r"""Return the first element of one name. Raises `ValueError` if there is none.

    >>> page = element('<fd_content fd="fd:1" pages="3">\na line\n\n</fd_content>', "fd_content")
    >>> page["pages"], page.body
    ('3', 'a line\n')
    """
    found = elements(text, name)
    if not found:
        raise ValueError(f"the model was shown no {name}: {text[:200]}")
    return found[0]
