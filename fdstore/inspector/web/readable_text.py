"""A text laid out for reading: JSON indented, Markdown rendered. Of a long one its beginning, or a part.

What it is says its media type, the name of a file, or, of JSON, how it begins.
"""

from __future__ import annotations

from fdstore.inspector.web.descriptor_query import ReadableView
from fdstore.model.records import Descriptor, Record
from fdstore.text.layout import reindent_json
from fdstore.text.media_types import media_type_of

MAX_CHARS: dict[ReadableView, int] = {"pretty": 100_000, "rendered": 20_000}
"""Characters of the stored text that are laid out at once."""

MAX_LAID_OUT = 300_000
"""Characters of indented JSON that are shown."""

JUDGED_CHARS = 2_000
"""Characters at the beginning of a text that may show that it is JSON."""

JSON_LINES = ("application/jsonl", "application/x-ndjson")


class ReadableText(Record, frozen=True, kw_only=True):
    """A part of a text, laid out: its characters from `first` to `last`. `text` is JSON with line breaks, or
    Markdown as it is stored; None if it is not JSON. `is_cut`: the end of what was laid out is not shown."""

    view: ReadableView
    first: int
    last: int
    text: str | None
    is_cut: bool = False


def view_of(descriptor: Descriptor, name: str, beginning: str) -> ReadableView | None:
    """Return how a text is laid out for reading, None if it is neither JSON nor Markdown."""
    if descriptor.kind != "text" or not descriptor.chars:
        return None
    named = [media_type_of("text", each) for each in (name, descriptor.source)]
    types = {descriptor.media_type.partition(";")[0], *named}
    if "text/markdown" in types:
        return "rendered"
    if any(each.endswith(("/json", "+json")) or each in JSON_LINES for each in types):
        return "pretty"
    judged = beginning[:JUDGED_CHARS]
    return "pretty" if judged.lstrip()[:1] in ("{", "[") and indented(judged, is_cut=True) else None


def lay_out(view: ReadableView, text: str, first: int, total: int) -> ReadableText:
    """Return a part of a text of `total` characters that begins with character `first`, laid out."""
    has_more = first + len(text) - 1 < total
    if view == "rendered":
        part = whole_lines(text) if has_more else text
        return ReadableText(view=view, first=first, last=first + len(part) - 1, text=part)
    shown = indented(text, is_cut=has_more)
    is_cut = shown is not None and len(shown) > MAX_LAID_OUT
    if shown is not None and (is_cut or has_more):
        shown = whole_lines(shown[:MAX_LAID_OUT])
    return ReadableText(view=view, first=first, last=first + len(text) - 1, text=shown, is_cut=is_cut)


def indented(text: str, *, is_cut: bool) -> str | None:
    """Return JSON, or JSON in lines, with line breaks and indentation; None if it is neither."""
    whole = reindent_json(text, is_cut=is_cut)
    if whole is not None:
        return whole
    lines = (whole_lines(text) if is_cut else text).split("\n")
    found = [reindent_json(line) if line.strip() else "" for line in lines]
    return None if None in found or not any(found) else "\n".join(each or "" for each in found)


def whole_lines(text: str) -> str:
    """Return a text without its last line, which may be cut; all of it if it has no other.

    >>> whole_lines("one\\ntw"), whole_lines("on")
    ('one\\n', 'on')
    """
    return text[: text.rfind("\n") + 1] or text
