"""Markdown that reads alike on the site and in a plain viewer of the repository."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

COLUMNS = 120

NOTE = "<!-- Made from the code by `make generate`: change that. -->"

_CODE = re.compile(r"(`+[^`]*`+)")
_OPTION = re.compile(r"(?<![\w`-])(--?[a-zA-Z][a-z-]*)(?![\w`])")
_NAME = re.compile(r"\$?\b[A-Za-z]+(?:_[A-Za-z]+)+\b")


def prose(text: str) -> str:
    """Return one paragraph of plain text as Markdown: what would be markup is escaped, options, and names
    with an underscore, are code.

    >>> prose("Use --json, or `*` for all <b>.")
    'Use `--json`, or `*` for all &lt;b>.'
    """
    parts = _CODE.split(literal(text))
    for number in range(0, len(parts), 2):
        plain = parts[number]
        plain = _OPTION.sub(r"`\1`", plain)
        parts[number] = _NAME.sub(lambda found: f"`{found[0]}`", plain)
    return "".join(parts)


def literal(text: str) -> str:
    """Return one paragraph of plain text that is shown as it is, but for what is code in it already."""
    parts = _CODE.split(" ".join(text.split()))
    for number in range(0, len(parts), 2):
        plain = parts[number].replace("*", "\\*").replace("](", "]\\(").replace("<", "&lt;")
        plain = re.sub(r"\] ?\[", lambda found: found[0].replace("[", "\\["), plain)
        parts[number] = re.sub(r"(?<!\w)_", r"\_", plain)
    return "".join(parts)


def paragraph(markdown: str) -> str:
    """Return a paragraph of Markdown in lines."""
    return textwrap.fill(markdown, COLUMNS, break_long_words=False, break_on_hyphens=False)


def paragraphs(markdown: str) -> str:
    """Return paragraphs of Markdown, with blank lines between them, in lines."""
    return "\n\n".join(paragraph(each) for each in markdown.strip().split("\n\n"))


def item(markdown: str) -> str:
    """Return an item of a list in lines."""
    filled = textwrap.fill(
        markdown, COLUMNS, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False
    )
    return re.sub(r"\n  ([-+*#>]|\d+[.)]) ", r" \1\n  ", filled)  # such a word would begin a list


def fence(text: str, language: str = "") -> str:
    """Return a block of code that is only shown."""
    ticks = "````" if "```" in text else "```"
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"


def quote(text: str) -> str:
    """Return a text of several lines as a quotation."""
    return "\n".join(
        textwrap.fill(literal(line), COLUMNS, initial_indent="> ", subsequent_indent="> ")
        for line in text.rstrip().split("\n")
    )


def details(summary: str, block: str) -> str:
    """Return a block that is unfolded by a click."""
    return f'<details markdown="1">\n<summary>{summary}</summary>\n\n{block}\n\n</details>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells of Markdown."""
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines)


def page(title: str, blocks: Iterable[str]) -> str:
    """Return a whole page."""
    return "\n\n".join([f"# {title}", NOTE, *blocks]) + "\n"
