"""A search line by line, to compare with, and the search of a text in pieces."""

from __future__ import annotations

import io

import re2
from hypothesis import strategies as st

from fdstore.text.grep import GrepPrinter
from fdstore.text.hits import HitCollector
from fdstore.text.pattern import MAX_PATTERN_CHARS, HitCount, Pattern
from fdstore.text.search import Scan

ATOMS = [
    *("a", "b", "é", "É", "ð", r"\r", "x y", ".", r"\s", r"\S", r"\w", r"\W", r"\d", r"\D", r"\b", r"\B"),
    *("^", "$", "[^a]", "[^b\\n]", "[[:space:]]", r"\n", r"\pL", r"\PL", "", "(?i)a", "(?s).", "(?m)^"),
    *("(?m)$", r"\A", r"\z", "(?-m)$", "(?s-i:.)", r"\Qa.b", r"\Qa\E", "(?P<name>b)", "(a)", r"\x0a", r"\C"),
]
patterns = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=4).map("".join)
        | st.tuples(inner, inner).map("|".join)
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{0}"])).map(
            "(?:{0[0]}){0[1]}".format
        )
    ),
    max_leaves=8,
).filter(lambda pattern: 0 < len(pattern) <= MAX_PATTERN_CHARS)
texts = st.text(st.sampled_from("aAbéÉð\n\n\r\tx 1\0"), max_size=60)


def lines_of(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


class Reference:
    """A pattern on one decoded line. RE2 sees bytes, and `\\B` holds between those of one character; so for
    patterns with one each character is one byte, which RE2 folds no case of beyond ASCII."""

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        self.one_byte = r"\B" in pattern and r"\C" not in pattern
        options = re2.Options()
        options.log_errors = False
        options.case_sensitive = not ignore_case
        if self.one_byte:
            options.encoding = re2.Options.Encoding.LATIN1
        self._compiled = re2.compile(pattern.encode("latin-1") if self.one_byte else pattern, options)

    def span(self, line: str) -> tuple[int, int] | None:
        """The first match, in characters."""
        match = self._compiled.search(line.encode("latin-1") if self.one_byte else line)
        return None if match is None else match.span()

    def hits(self, line: str) -> int:
        """The matches of a line that has some: those that are not empty, or one."""
        data = line.encode("latin-1" if self.one_byte else "utf-8")
        found = [match.span() for match in self._compiled.finditer(data)]
        return max(1, sum(start < end for start, end in found)) if found else 0


def scanned(
    pattern: str,
    text: str,
    *readers: HitCollector | GrepPrinter,
    piece: int = 7,
    counts_hits=False,
    **options: bool,
):
    """Feeds the text in pieces of `piece` bytes, which may cut characters."""
    scan = Scan(Pattern(pattern, **options), readers, HitCount() if counts_hits else None)
    data = io.BytesIO(text.encode())
    while part := data.read(piece):
        scan.feed(part)
    scan.finish()
    return scan


def found(pattern: str, text: str, *, context: int = 0, max_matches: int = 10_000, **options):
    collector = HitCollector(max_matches, context)
    scanned(pattern, text, collector, **options)
    return collector.hits
