"""HTML: title, headings, how much of what there is, and the beginning of the text."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape

from fdstore.text.previews.sample import Outline, Sample, excerpt, first_and_last, part_of
from fdstore.text.quantities import format_count

_START = re.compile(
    r"\s*+(?:<\?xml[^>]*+>\s*+)?(?:<!--(?:(?!-->).){0,2000}-->\s*+)*<(?:!doctype html|html[\s>])",
    re.I | re.S,
)
# what is not text; a comment or script that the cut leaves open goes on to the end
_UNSEEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<[!?][^<>]*+>|<(script|style|template|svg|noscript)\b[^<>]*+>.*?(?:</\1\s*+>|\Z)",
    re.I | re.S,
)
_TAG = re.compile(r"<(/?)([a-z][a-z0-9-]*+)\b[^<>]*+>", re.I)
_COUNTED = {"a": "link", "table": "table", "form": "form", "img": "image", "li": "list item"}
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_ENDS_A_LINE = frozenset({"p", "div", "li", "tr", "br", "table", "ul", "ol", "title", *_HEADINGS})
_MAX_CHARS = 60_000
_MAX_TAGS = 2000
_SHOWN_HEADINGS = 24
_TEXT_CHARS = 600
_HEADING_CHARS = 100


def html(sample: Sample) -> Outline | None:
    """Describe an HTML page."""
    if not _START.match(sample.head[:10_000]):
        return None
    head = sample.head[:_MAX_CHARS]
    seen = _UNSEEN.sub(" ", head)
    counts: Counter[str] = Counter()
    headings: list[str] = []
    text: list[str] = []
    title = inside = ""
    begin = end = tags = 0
    for tag in _TAG.finditer(seen):
        tags += 1
        if tags > _MAX_TAGS:
            break
        name, closing = tag[2].lower(), bool(tag[1])
        if inside != "title":
            text.append(seen[end : tag.start()])
        if name in _ENDS_A_LINE:
            text.append("\n")
        end = tag.end()
        if not closing:
            counts[name] += name in _COUNTED and (name != "a" or "href" in tag[0].lower())
            if name in _HEADINGS or name == "title":
                inside, begin = name, end
        elif name == inside:
            words = _words(_TAG.sub("", seen[begin : tag.start()]))
            if name == "title":
                title = title or words
            elif words:
                headings.append(f"{name}: {excerpt(words, _HEADING_CHARS)}")
            inside = ""
    if tags > _MAX_TAGS:
        of = f"tags 1-{_MAX_TAGS}"
    elif len(head) < sample.chars:
        of = f"chars 1-{len(head)}"
    else:
        of = "all"
    lines = [f"title: {excerpt(title)}"] if title else []
    found = [format_count(counts[tag], noun) for tag, noun in _COUNTED.items() if counts[tag]]
    lines.append(", ".join([format_count(len(headings), "heading"), *found]) + part_of(of))
    lines += first_and_last(headings, _SHOWN_HEADINGS, "headings")
    written = [words for line in "".join(text).split("\n") if (words := _words(line))]
    lines.append(f"text: {excerpt(' / '.join(written), _TEXT_CHARS)}")
    return Outline(kind="html outline", of=of, lines=lines)


def _words(markup: str) -> str:
    return " ".join(unescape(markup).split())
