"""A search finds exactly the lines that match one by one, in whatever pieces the text comes."""

from __future__ import annotations

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument
from fdstore.text import hits as hits_module
from fdstore.text import pattern as pattern_module
from fdstore.text.hits import KEPT_LINE_CHARS, HitCollector
from fdstore.text.paging import count_lines
from fdstore.text.pattern import Pattern
from fdstore.text.search import search_limits
from tests.unit.text.reference_search import Reference, found, lines_of, patterns, scanned, texts

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
    assert len(lines) == count_lines(text)


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


@given(pattern=patterns, text=texts, piece=st.integers(1, 70), kept=st.integers(1, 5))
@example(pattern="b", text="abb\nb\nbbbb\n", piece=70, kept=1)
@example(pattern=r"b|\d", text="ab1\nb\n11bb\n", piece=70, kept=1)
@example(pattern=r"\d+", text="11\n11\n111", piece=70, kept=1)
@example(pattern=r"\Ab|b", text="bb\nbbb\nb", piece=70, kept=1)
@example(pattern="x*", text="xx\na\naxbx", piece=70, kept=1)
@example(pattern="(?P<name>a)", text="aa\na\naaa", piece=70, kept=1)
def test_the_hits_are_those_of_each_line_alone(pattern: str, text: str, piece: int, kept: int):
    text = text.replace("É", "ð").replace("é", "ð")
    try:
        alone = Reference(pattern)
    except re2.error:
        return
    expected = sum(alone.hits(line) for line in lines_of(text))

    collected = scanned(pattern, text, HitCollector(10_000, 0), piece=piece, counts_hits=True)
    counted = scanned(pattern, text, HitCollector(kept, 0), piece=piece, counts_hits=True)

    assert (collected.hits.hits, collected.hits.is_exact) == (expected, True)
    assert (counted.hits.hits, counted.hits.is_exact) == (expected, True)


@pytest.mark.parametrize("pattern", ["hit", r"h.t|x", r"\Ahit|hit"])
def test_hits_of_dense_and_of_rare_lines_are_counted(pattern: str):
    lines = ["miss"] * 500 + ["a hit", "hit, hit"] * 300 + ["miss", "hithithit"]

    scan = scanned(pattern, "\n".join(lines), piece=5000, counts_hits=True)

    assert (scan.matches, scan.hits.hits) == (601, 903)


@pytest.mark.parametrize("text", ["ab" * 500, "ab ab\n" * 500])
def test_where_hits_are_too_many_to_count_there_are_at_least_as_many(text: str, monkeypatch):
    monkeypatch.setattr(pattern_module, "MAX_COUNTED", 100)

    scan = scanned("[ab]", text, counts_hits=True)
    plain = scanned("a", text, counts_hits=True)

    assert not scan.hits.is_exact
    assert max(100, scan.matches) <= scan.hits.hits < len(text)
    assert (plain.hits.hits, plain.hits.is_exact) == (text.count("a"), True)


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


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        (r"(?<=from )\w+", "no look-around"),
        (r"ERROR(?! 0)", "no look-around"),
        (r"(\w) \1", "no back-references"),
        (r"(?P<a>x)(?P=a)", "no back-references"),
        (r"a++b", "never backtracks"),
        (r"(?>a|ab)c", "never backtracks"),
    ],
)
def test_a_pattern_of_another_engine_says_what_to_do_without_it(pattern, advice):
    with pytest.raises(InvalidArgument, match=advice):
        Pattern(pattern)
