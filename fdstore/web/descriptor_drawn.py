"""Parts of a descriptor as the scripts of its page take them: positions as data, rows as HTML.

The page and its scripts show the same rows, which `templates/descriptor_rows.html` writes: what is escaped
and what is made visible is decided there, once.
"""

from __future__ import annotations

from typing import Any

import msgspec
from jinja2 import Environment

from fdstore.records import Descriptor, Record
from fdstore.store.contents.page_windows import PageText
from fdstore.store.contents.search_steps import SearchStep
from fdstore.web.descriptor_data import ContentPart
from fdstore.web.descriptor_page import Look, TextPart
from fdstore.web.descriptor_query import Position


class DrawnPage(Record, frozen=True):
    """A page of a text, or a block of bytes: its number and its rows."""

    page: int
    html: str


class DrawnPart(Record, frozen=True, kw_only=True):
    """A part of a content. `page`, `line` and `at` (an offset) are where it was asked for."""

    descriptor: Descriptor
    position: Position | None
    items: list[DrawnPage]
    page: int | None = None
    line: int | None = None
    at: int | None = None


class DrawnHit(Record, frozen=True, kw_only=True):
    """A hit, as in `Hit`, and its item of the list."""

    line: int
    chars: str
    line_start: int
    html: str


class DrawnStep(Record, frozen=True, kw_only=True):
    """A step of a search, as in `SearchStep`."""

    hits: list[DrawnHit]
    next_char: int | None
    searched: int
    total: int


def draw_part(templates: Environment, look: Look, shown: ContentPart) -> DrawnPart:
    """Return a part with its rows as HTML."""
    rows = _macros(templates)
    if shown.bytes is not None:
        items = [DrawnPage(block.page, str(rows.bytes(look, block))) for block in shown.bytes.blocks]
        return DrawnPart(descriptor=shown.descriptor, position=shown.position, items=items, at=shown.bytes.at)
    text = shown.text or TextPart(page=1, line=1, char=1, pages=())
    return DrawnPart(
        descriptor=shown.descriptor,
        position=shown.position,
        items=[DrawnPage(page.page, str(rows.text(look, page))) for page in text.pages],
        page=text.page,
        line=text.line,
    )


def draw_step(templates: Environment, look: Look, step: SearchStep) -> DrawnStep:
    """Return the hits of a step as items of a list."""
    rows = _macros(templates)
    hits = [
        DrawnHit(line=hit.line, chars=hit.chars, line_start=hit.line_start, html=str(rows.hit(look, hit)))
        for hit in step.hits
    ]
    return DrawnStep(hits=hits, next_char=step.next_char, searched=step.searched, total=step.total)


def rest_of_page(shown: ContentPart) -> ContentPart:
    """Return what follows the position on its page: more of a page that is larger than a window."""
    text = shown.text
    if text is None:
        return shown
    rest = [_cut(page, text) for page in text.pages if page.page == text.page]
    return msgspec.structs.replace(shown, text=msgspec.structs.replace(text, pages=tuple(rest)))


def _cut(page: PageText, at: TextPart) -> PageText:
    skipped = page.text[: max(0, at.char - page.first_char)]
    if not skipped:
        return msgspec.structs.replace(page, left_before=0)
    return msgspec.structs.replace(
        page,
        text=page.text[len(skipped) :],
        first_char=at.char,
        first_line=at.line,
        continued=not skipped.endswith("\n"),
        left_before=0,
    )


def _macros(templates: Environment) -> Any:
    return templates.get_template("descriptor_rows.html").module
