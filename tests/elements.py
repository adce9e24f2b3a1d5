"""A parser of tool results as models see them, written from the contract and independent of `render.py`.

No content can forge a frame, so every frame tag in a result is real. The text between them is bodies, each
with one LF after the opening tag and one before the closing tag.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from fdstore.elements.kinds import NAMED

PARENTS = {name for name, kind in NAMED.items() if kind.holds == "elements"}
BODIES = {name for name, kind in NAMED.items() if kind.holds == "text"}
EITHER = NAMED.keys() - PARENTS - BODIES
TAG = re.compile(r'<(?P<end>/?)(?P<name>[a-z_]+)(?P<attributes>(?: [a-z_]+="[^"<>]*")*)(?P<empty>/?)>')
OURS = re.compile(r"</?(?:fd_|process_|python_|person_|preview|tail|message)")
NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Element(NamedTuple):
    """One element: its attributes in order, and either a body or children."""

    name: str
    attributes: dict[str, str]
    body: str | None
    children: list[Element]

    def __getitem__(self, attribute: str) -> str:  # type: ignore[override]
        return self.attributes[attribute]

    def child(self, name: str) -> Element:
        [found] = [child for child in self.children if child.name == name]
        return found

    @property
    def message(self) -> str:
        return self.child("message").body or ""


def elements(shown: str) -> list[Element]:
    """Return the elements of a result; fail if it contains anything else or is malformed."""
    found, end = [], 0
    while end < len(shown):
        element, end = _element(shown, end)
        _check_xml(element)
        found.append(element)
        if end < len(shown):
            assert shown[end] == "\n", "elements stand on lines of their own"
            end += 1
    return found


def only(shown: str) -> Element:
    """Return the only element of a result."""
    [element] = elements(shown)
    return element


def _element(shown: str, start: int) -> tuple[Element, int]:
    opening = TAG.match(shown, start)
    assert opening, f"no tag at {shown[start : start + 80]!r}"
    assert not opening["end"]
    name = opening["name"]
    assert name in PARENTS | BODIES | EITHER
    attributes = _attributes(opening["attributes"])
    if opening["empty"]:
        return Element(name, attributes, None, []), opening.end()
    assert shown[opening.end()] == "\n"
    inside = opening.end() + 1
    has_children = name in PARENTS or (name in EITHER and shown.startswith("<fd_result ", inside))
    children: list[Element] = []
    if not has_children:
        following = OURS.search(shown, inside)
        assert following, f"{name} is never closed"
        end = following.start()
        body = shown[inside : end - 1]
        assert shown[end - 1] == "\n"
    else:
        body, end = None, inside
        while not shown.startswith("</", end):
            child, end = _element(shown, end)
            assert "escaped" not in child.attributes, "the outermost element says it for all"
            children.append(child)
            assert shown[end] == "\n"
            end += 1
    closing = f"</{name}>"
    assert shown.startswith(closing, end), f"{shown[end : end + 80]!r} does not close {name}"
    return Element(name, attributes, body, children), end + len(closing)


def _attributes(written: str) -> dict[str, str]:
    pairs = re.findall(r' ([a-z_]+)="([^"]*)"', written)
    attributes = {name: ElementTree.fromstring(f'<a v="{value}"/>').attrib["v"] for name, value in pairs}
    assert len(attributes) == len(pairs), "an attribute is given twice"
    if "escaped" in attributes:
        assert attributes["escaped"] == "true"
        assert pairs[-1][0] == "escaped"
    return attributes


def _check_xml(element: Element) -> None:
    """The element is XML once its bodies are taken as text."""
    ElementTree.fromstring(_xml(element))


def _xml(element: Element) -> str:
    attributes = "".join(
        f' {name}="{escape(value, {chr(34): "&quot;"})}"' for name, value in element.attributes.items()
    )
    inside = "".join(map(_xml, element.children)) + escape(NOT_XML.sub("", element.body or ""))
    return f"<{element.name}{attributes}>{inside}</{element.name}>"
