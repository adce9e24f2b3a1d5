"""Hits are printed as grep prints them."""

from __future__ import annotations

import io
import re

import re2
from hypothesis import example, given
from hypothesis import strategies as st

from fdstore.text.grep import GrepPrinter
from fdstore.text.hits import HitCollector
from fdstore.text.pattern import Pattern
from fdstore.text.search import Inverted, Scan
from tests.unit.text.reference_search import Reference, lines_of, patterns, scanned, texts


def grep(text: str, before: int, after: int, most: int | None, *, invert: bool) -> str:
    """Return the output of `grep -n` for "a|é", computed slowly: `most` hits and the lines around."""
    lines = lines_of(text)
    hits = [number for number, line in enumerate(lines, 1) if bool(re.search("a|é", line)) != invert][:most]
    shown = {near for hit in hits for near in range(max(1, hit - before), min(len(lines), hit + after) + 1)}
    printed, previous = "", None
    for number in sorted(shown):
        if (before or after) and previous is not None and number > previous + 1:
            printed += "--\n"
        printed += f"{number}{':' if number in hits else '-'}{lines[number - 1]}\n"
        previous = number
    return printed


@given(
    text=texts,
    before=st.integers(0, 4),
    after=st.integers(0, 4),
    most=st.integers(1, 4) | st.none(),
    piece=st.integers(1, 70),
    invert=st.booleans(),
)
@example(text="a\na\nb\nb\na\nb\n", before=0, after=1, most=2, piece=3, invert=False)
@example(text="a\nb\nb\nb\na\n", before=1, after=1, most=None, piece=3, invert=False)
def test_hits_are_printed_as_grep_does(
    text: str, before: int, after: int, most: int | None, piece: int, invert: bool
):
    printer = GrepPrinter(before, after, max_matches=most)
    pattern = Pattern("a|é")
    scan = Scan(Inverted(pattern) if invert else pattern, [HitCollector(1, after), printer])

    data = io.BytesIO(text.encode())
    while part := data.read(piece):
        scan.feed(part)
    scan.finish()

    assert printer.take().decode() == grep(text, before, after, most, invert=invert)
    assert printer.take() == b""
    assert scan.matches == grep(text, 0, 0, None, invert=invert).count("\n")
    assert scan.lines == len(lines_of(text))


@given(pattern=patterns, text=texts)
def test_the_matches_in_a_line_are_those_of_the_pattern_one_after_the_other(pattern: str, text: str):
    if r"\C" in pattern:
        return  # one byte, which may be a part of a character
    text = text.replace("É", "ð").replace("é", "ð")
    try:
        alone = Reference(pattern)
    except re2.error:
        return
    compiled = Pattern(pattern)
    for line in lines_of(text):
        coded = line.encode("latin-1") if alone.one_byte else line
        spans = [match.span() for match in alone._compiled.finditer(coded)]

        found = compiled.spans(line.encode())

        assert [line.encode()[a:b].decode() for a, b in found] == [line[a:b] for a, b in spans if a < b]


def test_a_printed_line_is_never_truncated():
    line = "é" * 50_000 + "X"
    printer = GrepPrinter(1, 1)

    scanned("X", f"{line}\n{line[:-1]}", printer, piece=1001)

    assert printer.take().decode() == f"1:{line}\n2-{line[:-1]}\n"
