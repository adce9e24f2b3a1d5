"""Texts and their pages, lines and characters, by the rules of the contract; and a check of a slice."""

from __future__ import annotations

import re
from functools import lru_cache

from hypothesis import strategies as st

from fdstore.model.records import Slice

PIECES = [
    "\n",
    "\n\n\n",
    "a",
    "line\n",
    "longer than a page ",
    "漢字\n",
    "\r\n",
    "\N{GRINNING FACE}",
    "\0",
    "\u2028",
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map("".join)
some_numbers = st.integers(1, 12) | st.just(2**53)


def lines_of(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


@lru_cache(maxsize=8)
def pages_of(text: str, size: int) -> list[str]:
    pages, start = [], 0
    while len(text) - start > size:
        end = text.rfind("\n", start, start + size) + 1 or start + size
        pages.append(text[start:end])
        start = end
    return [*pages, text[start:]]


def units_of(text: str, size: int, mode: str) -> list[str]:
    return {"page": lambda: pages_of(text, size), "line": lambda: lines_of(text), "char": lambda: list(text)}[
        mode
    ]()


def check_slice(found: Slice, text: str, size: int, mode: str, start: int, count: int) -> None:
    """Check that `found` is the slice of `text` that the contract specifies."""
    units = units_of(text, size, mode)
    piece = "".join(units[start - 1 : start - 1 + count])
    begin = len("".join(units[: start - 1]))
    end = begin + len(piece)
    first_line = text[:begin].count("\n") + 1

    assert found.text == piece
    assert (found.mode, found.start) == (mode, start)
    assert found.count == len(units[start - 1 : start - 1 + count])
    assert found.pages == len(pages_of(text, size))
    assert (found.total_lines, found.total_chars) == (len(lines_of(text)), len(text))
    assert found.chars == (f"{begin + 1}-{end}" if piece else "0-0")
    assert found.lines == (f"{first_line}-{first_line + len(lines_of(piece)) - 1}" if piece else "0-0")
    assert found.continued == (bool(piece) and begin > 0 and text[begin - 1] != "\n")
    assert found.truncated == (bool(piece) and end < len(text) and not piece.endswith("\n"))
    assert (found.state, found.eof) == ("sealed", end == len(text))
    assert found.page == (start if mode == "page" and found.count == 1 else None)
