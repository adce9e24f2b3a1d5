"""Parts of a descriptor as the scripts of its page take them: positions as data, rows as HTML.

The page and its scripts show the same rows, which `templates/descriptor_rows.html` writes: what is escaped
and what is made visible is decided there, once.
"""

from __future__ import annotations

from typing import Any

import msgspec
from jinja2 import Environment

from fdstore.store.contents.page_windows import PageText
from fdstore.store.contents.search_steps import SearchStep
from fdstore.web.descriptor_data import ContentPart
from fdstore.web.descriptor_page import Look, TextPart


def draw_part(templates: Environment, look: Look, shown: ContentPart) -> dict[str, Any]:
    """Return a part for a script: its `items`, each a `page` of a text, or a block of bytes, and its rows as
    `html`; `page` and `line`, or `at` (an offset), are where it was asked for."""
    rows = _macros(templates)
    found: dict[str, Any] = {"descriptor": shown.descriptor, "position": shown.position}
    found |= {"page": None, "line": None, "at": None}
    if shown.bytes is not None:
        items = [(block.page, rows.bytes(look, block)) for block in shown.bytes.blocks]
        found["at"] = shown.bytes.at
    else:
        text = shown.text or TextPart(page=1, line=1, char=1, pages=())
        items = [(page.page, rows.text(look, page)) for page in text.pages]
        found |= {"page": text.page, "line": text.line}
    return found | {"items": [{"page": page, "html": str(html)} for page, html in items]}


def draw_step(templates: Environment, look: Look, step: SearchStep) -> dict[str, Any]:
    """Return a step of a search for a script, as in `SearchStep`: its hits have their items of the list as
    `html`."""
    rows = _macros(templates)
    hits = [
        {"line": hit.line, "chars": hit.chars, "line_start": hit.line_start, "html": str(rows.hit(look, hit))}
        for hit in step.hits
    ]
    return msgspec.structs.asdict(step) | {"hits": hits}


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
