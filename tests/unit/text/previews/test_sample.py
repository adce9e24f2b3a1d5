"""A sample has whole lines of a text with their true numbers, however much of the text is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.text.paging import count_lines
from fdstore.text.previews import sample_ends, sample_text
from fdstore.text.previews.line_search import MAX_HITS, LineSpan, compile_words, find_lines
from fdstore.text.previews.sample import MAX_LINES, SHORT_CHARS, TAIL_CHARS, WHOLE_BYTES, Sample, fit

texts = st.text(st.sampled_from("ab \r\n\n\0\u2028"), max_size=60)


def lines_of(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def check_lines(sample: Sample, text: str) -> None:
    lines = lines_of(text)
    numbers = [number for number, _ in sample.numbered()]
    assert sample.total_lines == len(lines)
    assert [line for _, line in sample.numbered()] == [lines[number - 1] for number in numbers]
    assert sorted(set(numbers)) == numbers
    assert sample.all_lines == (len(numbers) == len(lines))


@given(texts, st.integers(0, 60), st.integers(0, 60))
def test_the_lines_of_two_ends_have_their_true_numbers(text: str, head: int, tail: int) -> None:
    total = count_lines(text)

    check_lines(sample_ends(text[:head], text[len(text) - min(tail, len(text)) :], len(text), total), text)


@given(texts)
def test_a_short_text_is_looked_at_whole(text: str) -> None:
    sample = sample_text(text)

    check_lines(sample, text)
    assert sample.whole
    assert sample.all_lines
    assert sample.range_of_lines() == "all"


def test_of_a_long_text_the_two_ends_are_looked_at() -> None:
    text = "".join(f"line {number}\n" for number in range(1, 100_001))

    sample = sample_text(text)

    check_lines(sample, text)
    assert (len(sample.first), len(sample.last)) == (MAX_LINES, MAX_LINES)
    assert sample.range_of_lines() == f"lines 1-{MAX_LINES} and {100_001 - MAX_LINES}-100000"


def test_many_short_lines_are_not_all_looked_at() -> None:
    for text in (
        "\n" * (SHORT_CHARS - 1),
        "\n" * (TAIL_CHARS - 5),
        "a\n" * (10 * SHORT_CHARS),
        "a\n" * WHOLE_BYTES,
    ):
        sample = sample_text(text)

        check_lines(sample, text)
        assert len(sample.first) <= 2 * MAX_LINES


@given(st.text(st.sampled_from("ab é\r\n\n\0\u2028"), max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_the_spans_have_each_whole_line_once(text: str, head: int, tail: int) -> None:
    total = count_lines(text)
    sample = sample_ends(text[:head], text[len(text) - min(tail, len(text)) :], len(text), total)

    lines = lines_of(text)
    seen: list[int] = []
    for span in sample.spans:
        for number, line in enumerate(lines_of(span.data.decode()), span.first):
            assert line == lines[number - 1]
            seen.append(number)
        assert span.last == (seen[-1] if span.data else span.first - 1)
    assert sorted(set(seen)) == seen
    if head >= len(text):
        assert seen == list(range(1, total + 1))


WORD = compile_words(b"bad")
texts_with_hits = st.lists(st.sampled_from(["bad", "not bad, bad", "good", "", "é bad", "\r"]), max_size=30)


@given(texts_with_hits, st.booleans(), st.integers(1, 9))
def test_the_lines_with_a_word_are_found_with_their_numbers(lines: list[str], ends: bool, first: int) -> None:
    text = "\n".join(lines) + ("\n" if ends else "")

    lines = lines_of(text)
    found = find_lines([LineSpan(first, first + len(lines) - 1, text.encode())], WORD)

    expected = [(first + at, line) for at, line in enumerate(lines) if "bad" in line]
    assert [(line.number, line.text) for line in found.lines] == expected
    for line in found.lines:
        after = lines[line.number - first + 1 :]
        assert line.following(2) == (after[:2] or [""])
    assert found.searched == ([(first, first + len(lines) - 1)] if text else [])


@pytest.mark.thorough("its size takes long")
@given(st.integers(0, 3 * MAX_HITS), st.integers(0, 3000), st.integers(0, 3 * MAX_HITS))
def test_of_more_hits_those_in_the_lines_that_are_named_are_found(
    early: int, between: int, late: int
) -> None:
    lines = ["bad"] * early + ["good"] * between + ["bad"] * late
    text = "\n".join(lines)

    found = find_lines([LineSpan(1, len(lines_of(text)), text.encode())], WORD)

    expected = [
        number for a, b in found.searched for number in range(a, b + 1) if lines_of(text)[number - 1] == "bad"
    ]
    assert [line.number for line in found.lines] == expected
    assert len(expected) <= 2 * MAX_HITS
    assert not text or found.searched[-1][1] == len(lines_of(text))
    if early + late <= MAX_HITS:
        assert found.range_in(len(lines_of(text))) == "all"


@given(st.lists(st.text(st.sampled_from("ab"), max_size=20), min_size=1, max_size=12), st.integers(30, 200))
def test_what_does_not_fit_is_counted(lines: list[str], room: int) -> None:
    shown = fit(lines, room)

    assert len(shown) <= room
    if shown != "\n".join(lines):
        *kept, last = shown.split("\n")
        assert kept == lines[: len(kept)]
        assert last.startswith(f"({len(lines) - len(kept)} line")
