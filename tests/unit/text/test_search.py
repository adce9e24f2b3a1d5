"""A search finds exactly the lines that match one by one, in whatever pieces the text comes."""

from __future__ import annotations

import io
import re

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument
from fdstore.text import hits as hits_module
from fdstore.text.grep import GrepPrinter
from fdstore.text.hits import KEPT_LINE_CHARS, HitCollector
from fdstore.text.paging import count_lines
from fdstore.text.pattern import MAX_PATTERN_CHARS, Pattern
from fdstore.text.search import Inverted, Scan, search_limits

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


def scanned(pattern: str, text: str, *readers: HitCollector | GrepPrinter, piece: int = 7, **options: bool):
    """Feeds the text in pieces of `piece` bytes, which may cut characters."""
    scan = Scan(Pattern(pattern, **options), readers)
    data = io.BytesIO(text.encode())
    while part := data.read(piece):
        scan.feed(part)
    scan.finish()
    return scan


def found(pattern: str, text: str, *, context: int = 0, max_matches: int = 10_000, **options):
    collector = HitCollector(max_matches, context)
    scanned(pattern, text, collector, **options)
    return collector.hits


# What matches


@given(pattern=patterns, text=texts, piece=st.integers(1, 70), ignore_case=st.booleans())
@example(pattern=r"\Qa.b", text="a.b\nc", piece=9, ignore_case=False)
@example(pattern="^$", text="\n\na\n", piece=9, ignore_case=False)
@example(pattern=r"\Aa\z", text="b\na\na", piece=9, ignore_case=False)
@example(pattern="[^b]*a", text="x\na\nb\n", piece=9, ignore_case=False)
@example(pattern=r"\B", text="aðb\n\nð\n", piece=9, ignore_case=False)
@example(pattern=r"a*\B", text="aðaða", piece=9, ignore_case=False)
@example(pattern=r"(?-m)x*\B", text="aðb\nab", piece=9, ignore_case=False)
@example(pattern=r"\B|\Qa.", text="aðb\nab", piece=9, ignore_case=False)
@example(pattern=r"\bé\b|é$", text="aéb\né\nx é", piece=9, ignore_case=False)
def test_the_lines_found_are_those_that_match_one_by_one(
    pattern: str, text: str, piece: int, ignore_case: bool
):
    try:
        compiled = Pattern(pattern, ignore_case=ignore_case)
    except InvalidArgument:
        with pytest.raises(re2.error):
            Reference(pattern)
        return
    alone = Reference(pattern, ignore_case=ignore_case)
    if alone.one_byte:
        text = text.translate({ord("é"): "ð", ord("É"): "ð"})  # their case is not folded
    lines = lines_of(text)
    expected = [number for number, line in enumerate(lines, 1) if alone.span(line)]
    del compiled

    collector = HitCollector(10_000, 0)
    scan = scanned(pattern, text, collector, piece=piece, ignore_case=ignore_case)
    counted = scanned(pattern, text, piece=piece, ignore_case=ignore_case)

    assert [hit.line for hit in collector.hits] == expected
    assert [hit.text for hit in collector.hits] == [lines[number - 1] for number in expected]
    assert scan.matches == counted.matches == len(expected)
    assert scan.lines == counted.lines == len(lines)
    assert len(lines) == count_lines(text.count("\n"), len(text), text.endswith("\n"))


@pytest.mark.parametrize("char", ["é", "日", "\U0001f600"])
@pytest.mark.parametrize("pattern", [r"\B", r"x*\B", r"(?-m)\B", r"\B\Q"])
def test_no_pattern_matches_inside_a_character(char: str, pattern: str):
    # between a word character and one that is none there is a border, and so no \B
    assert found(pattern, f"a{char}a{char}a\n") == ()

    [hit] = found(pattern, f"a{char}ab\n")

    assert hit.column == 4


def test_a_line_of_nothing_but_borders_is_searched_in_linear_time():
    line = "aé" * 300_000 + "a"

    assert found(r"(?:.*z)?\B", line) == ()


@given(words=st.text(st.sampled_from("ab é<>-'`~&%#"), min_size=1, max_size=3), text=texts)
def test_a_plain_text_is_found_where_it_stands(words: str, text: str):
    assert scanned(words, text).matches == sum(words in line for line in lines_of(text))


@given(pattern=patterns, text=texts, first_char=st.integers(1, 10**9))
@example(pattern=r"\B", text="aða\naðab", first_char=1)
def test_a_hit_says_where_its_match_is_in_characters(pattern: str, text: str, first_char: int):
    text = text.replace("É", "ð")
    try:
        alone = Reference(pattern)
    except re2.error:
        return
    if r"\C" in pattern:
        return  # one byte, which may be a part of a character
    collector = HitCollector(10_000, 0)
    collector.next_char = first_char

    scanned(pattern, text, collector)

    for hit in collector.hits:
        first, last = alone.span(hit.text)
        before = first_char - 1 + sum(len(line) + 1 for line in lines_of(text)[: hit.line - 1])
        assert hit.column == first + 1
        assert hit.left_out == (0, 0)
        assert hit.chars == (f"{before + first + 1}-{before + last}" if last > first else "0-0")


@pytest.mark.parametrize(
    ("pattern", "line"),
    [("ÉCOLE", "école"), ("straße", "STRAẞE"), ("ωσ", "ΩΣ"), ("привет", "ПРИВЕТ"), ("k", "\u212a")],
)
def test_ignoring_case_knows_more_than_ascii(pattern: str, line: str):
    assert scanned(pattern, f"x\n{line}\n", ignore_case=True).matches == 1
    assert scanned(pattern, f"x\n{line}\n").matches == 0


def test_cr_is_a_part_of_the_line():
    assert scanned("b$", "ab\r\nab\n").matches == 1
    assert scanned(r"b\r$", "ab\r\nab\n").matches == 1


@pytest.mark.parametrize("density", [0.0, 0.1, 0.6, 1.0])
def test_counts_do_not_depend_on_the_density_of_hits(density: float):
    lines = ["hit 1" if number % 10 < density * 10 else "miss 1" for number in range(2000)]
    text = "\n".join(lines)

    for pattern in ("hit", r"hit \d", r"\Ahit"):
        assert scanned(pattern, text, piece=1000).matches == lines.count("hit 1")


def test_a_pattern_too_large_to_be_doubled_still_counts():
    pattern = "|".join([r"(?:\pL\pN){20}"] * 9 + ["hit"])

    assert scanned(pattern, "hit\nmiss\nhit hit\n").matches == 2


# What is refused


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("", "it has 0 characters; 1-1000 are allowed"),
        ("a" * 1001, "it has 1001 characters"),
        ("a\nb", "no line does"),
        ("(", "missing )"),
        ("a)|(b", "unexpected )"),
        (r"(?=a)", "invalid perl operator"),
        (r"(a)\1", "invalid escape sequence"),
        (r"(?:\pL{30}\pN{30}){30}", "pattern too large"),
        ("a{2000}", "repetition"),
        ("\ud800", "lone surrogate"),
        (7, "a text is needed"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused_with_the_reason(pattern: str, reason: str, capfd):
    with pytest.raises(InvalidArgument, match=r"^pattern: |^text: ") as refused:
        Pattern(pattern)

    assert reason in str(refused.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("context", "max_matches"), [(-1, 1), (101, 1), (0, 0), (0, 10_001), (True, 1), (0, True), (1.0, 1)]
)
def test_limits_have_bounds(context: int, max_matches: int):
    with pytest.raises(InvalidArgument):
        search_limits(context, max_matches)

    assert search_limits(100, 10_000) == (100, 10_000)


# What is kept


@given(text=texts, context=st.integers(0, 4), max_matches=st.integers(1, 5), piece=st.integers(1, 70))
def test_every_hit_has_the_lines_around_it(text: str, context: int, max_matches: int, piece: int):
    lines = lines_of(text)
    expected = [number for number, line in enumerate(lines, 1) if "a" in line]

    collector = HitCollector(max_matches, context)
    scan = scanned("a", text, collector, piece=piece)

    assert scan.matches == len(expected)
    assert [hit.line for hit in collector.hits] == expected[:max_matches]
    for hit in collector.hits:
        around = [*hit.before, *hit.after]
        first, last = max(1, hit.line - context), min(len(lines), hit.line + context)
        assert [near.line for near in around] == [n for n in range(first, last + 1) if n != hit.line]
        assert [near.text for near in around] == [lines[near.line - 1] for near in around]


@given(
    before=st.text("é日a", max_size=3000), after=st.text("é日a\0", max_size=3000), context=st.integers(0, 1)
)
@example(before="é" * 5000, after="日" * 5000, context=1)
@example(before="a" * 100, after="a" * 5000, context=0)
@example(before="日" * 5000, after="", context=0)
def test_a_long_line_is_kept_around_its_match(before: str, after: str, context: int):
    line = f"{before}X{after}"

    [hit] = found("X", f"one\n{line}\nthree", context=context, piece=999)

    assert len(hit.text) == min(len(line), KEPT_LINE_CHARS)
    assert hit.text[hit.column - 1] == "X"
    assert sum(hit.left_out) + len(hit.text) == len(line)
    assert line[hit.left_out[0] :].startswith(hit.text)
    assert hit.chars == f"{5 + len(before)}-{5 + len(before)}"


def test_a_long_line_near_a_hit_is_kept_from_its_beginning():
    [hit] = found("X", "é" * 5000 + "\nX\n", context=1)

    assert hit.before[0].text == "é" * KEPT_LINE_CHARS
    assert hit.before[0].left_out == 5000 - KEPT_LINE_CHARS


def test_the_total_text_kept_is_bounded_while_counting_continues(monkeypatch):
    monkeypatch.setattr(hits_module, "KEPT_CHARS", 1000)
    text = ("x" * 99 + "\n") * 500 + ("a" * 99 + "\n") * 100

    collector = HitCollector(10_000, 0)
    scan = scanned("a", text, collector)

    assert len(collector.hits) == 11
    assert scan.matches == 100


def test_lines_without_a_hit_do_not_count_as_kept(monkeypatch):
    monkeypatch.setattr(hits_module, "KEPT_CHARS", 1000)
    text = ("x" * 99 + "\n") * 500 + "hit\n"

    [hit] = found("hit", text, context=3)

    assert (hit.line, len(hit.before)) == (501, 3)


# What is printed


def grep(pattern: str, text: str, context: int) -> str:
    """Return the output of `grep -n -C`, computed slowly."""
    lines = lines_of(text)
    matched = {number for number, line in enumerate(lines, 1) if Reference(pattern).span(line)}
    shown = {
        near
        for number in matched
        for near in range(number - context, number + context + 1)
        if 1 <= near <= len(lines)
    }
    printed, previous = "", None
    for number in sorted(shown):
        if context and previous is not None and number > previous + 1:
            printed += "--\n"
        printed += f"{number}{':' if number in matched else '-'}{lines[number - 1]}\n"
        previous = number
    return printed


@given(text=texts, context=st.integers(0, 4), piece=st.integers(1, 70))
def test_hits_are_printed_as_grep_does(text: str, context: int, piece: int):
    printer = GrepPrinter(context, context)

    scanned("a|é", text, HitCollector(1, context), printer, piece=piece)

    assert printer.take().decode() == grep("a|é", text, context)
    assert printer.take() == b""


@given(
    text=texts,
    before=st.integers(0, 3),
    after=st.integers(0, 3),
    most=st.integers(1, 4) | st.none(),
    piece=st.integers(1, 70),
    invert=st.booleans(),
)
def test_lines_before_and_after_and_a_last_hit_are_those_of_a_search_line_by_line(
    text: str, before: int, after: int, most: int | None, piece: int, invert: bool
):
    lines = lines_of(text)
    every = [number for number, line in enumerate(lines, 1) if bool(re.search("a|é", line)) != invert]
    kept = every[:most]
    around = {near for hit in kept for near in range(max(1, hit - before), min(len(lines), hit + after) + 1)}
    printer = GrepPrinter(before, after, max_matches=most)
    pattern = Pattern("a|é")
    scan = Scan(Inverted(pattern) if invert else pattern, [printer])

    data = io.BytesIO(text.encode())
    while part := data.read(piece):
        scan.feed(part)
    scan.finish()

    printed = printer.take().decode()
    numbers = re.findall(r"(?m)^(\d+)([:-])", printed)
    assert numbers == [(str(n), ":" if n in kept else "-") for n in sorted(around)]
    assert scan.matches == len(every)
    assert scan.lines == len(lines)


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
