"""HTML: title, headings, how much of what there is, and the beginning of the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from itertools import islice

from fdstore.text.previews.sample import Outline, Sample, excerpt, first_and_last, part_of
from fdstore.text.quantities import plain_count

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
# in lower case, with a beginning that re finds fast
_TITLE, _HEADING = re.compile(r"<title(?![\w-])[^<>]*+>"), re.compile(r"<h[1-6](?![\w-])[^<>]*+>")
_COUNTED = {
    "link": re.compile(r"<a\s[^<>]*?href"),
    "table": re.compile(r"<table(?![\w-])"),
    "form": re.compile(r"<form(?![\w-])"),
    "image": re.compile(r"<img(?![\w-])"),
    "list item": re.compile(r"<li(?![\w-])"),
}
_LOWER = {number: number + 32 for number in range(ord("A"), ord("Z") + 1)}
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_ENDS_A_LINE = frozenset({"p", "div", "li", "tr", "br", "table", "ul", "ol", "title", *_HEADINGS})
_MAX_CHARS, _MAX_TAGS = 60_000, 2000
"""Where the beginning of the text is looked for."""

_SHOWN_HEADINGS = 24
_TEXT_CHARS = 600
_HEADING_CHARS = 100


def html(sample: Sample) -> Outline | None:
    """Describe an HTML page."""
    if not _START.match(sample.head[:10_000]):
        return None
    seen = _UNSEEN.sub(" ", sample.head)
    lowered = seen.lower()
    if len(lowered) != len(seen):  # a few letters are two in lower case
        lowered = seen.translate(_LOWER)
    title, *_ = [*_inside(seen, lowered, "title", _TITLE), ("", "")]
    headings = [
        f"{name}: {excerpt(words, _HEADING_CHARS)}"
        for name, words in _inside(seen, lowered, "h", _HEADING)
        if words
    ]
    of = "all" if sample.whole else f"chars 1-{len(sample.head)}"
    lines = [f"title: {excerpt(title[1])}"] if title[1] else []
    found = [
        plain_count(count, noun) for noun, tag in _COUNTED.items() if (count := len(tag.findall(lowered)))
    ]
    lines.append(", ".join([plain_count(len(headings), "heading"), *found]) + part_of(of))
    lines += first_and_last(headings, _SHOWN_HEADINGS, "headings")
    lines.append(f"text: {excerpt(_beginning_of_the_text(seen[:_MAX_CHARS]), _TEXT_CHARS)}")
    return Outline(kind="html outline", of=of, lines=lines)


def _inside(seen: str, lowered: str, tag: str, opening: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the words of each element that ends before the next one begins."""
    found = list(opening.finditer(lowered))
    for at, hit in enumerate(found):
        limit = found[at + 1].start() if at + 1 < len(found) else len(lowered)
        name = tag if tag == "title" else hit[0][1:3]
        end = lowered.find(f"</{name}", hit.end(), limit)
        if end >= 0:
            yield name, _words(_TAG.sub("", seen[hit.end() : end]))


def _beginning_of_the_text(seen: str) -> str:
    text: list[str] = []
    end, is_title = 0, False
    for tag in islice(_TAG.finditer(seen), _MAX_TAGS):
        name = tag[2].lower()
        if not is_title:
            text.append(seen[end : tag.start()])
        if name in _ENDS_A_LINE:
            text.append("\n")
        if name == "title":
            is_title = not tag[1]
        end = tag.end()
    return " / ".join(words for line in "".join(text).split("\n") if (words := _words(line)))


def _words(markup: str) -> str:
    return " ".join(unescape(markup).split())
