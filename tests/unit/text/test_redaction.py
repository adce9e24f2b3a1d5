"""Redacted texts have no match of a pattern left, whatever the text and the pattern."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.text.pattern import Pattern
from fdstore.text.redaction import MARK, Redactor

PATTERNS = ["b+", "a.*b", r"\ba", r"a\B", "^a|b$", "e", r"\[", "[^a]b", "redacted", "(?i)B", "."]
PATTERNS += ["ä|漢.", r"a\Cb"]
letters = st.text(st.sampled_from('abeA ä漢\n"\\]\ud800[re'), max_size=30)
patterns = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3)
values = st.recursive(
    letters | st.integers(-300, 300) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(letters, inner, max_size=3),
    max_leaves=8,
)


def left(text: str, given: list[str]) -> list[str]:
    """The matches in a text that are not within "[redacted]"."""
    found = []
    for line in text.split("\n"):
        data = line.encode("utf-8", "replace")
        marks = [at for at in range(len(data)) if data.startswith(MARK.encode(), at)]
        for pattern in given:
            for start, end in Pattern(pattern).spans(data):
                if not any(mark <= start and end <= mark + len(MARK) for mark in marks):
                    found.append(f"{pattern}: {data[start:end]!r} in {line!r}")
    return found


def texts_of(value: Any) -> list[str]:
    """Every text in a JSON value, and its own JSON."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [each for pair in value.items() for item in pair for each in texts_of(item)]
    if isinstance(value, list):
        return [each for item in value for each in texts_of(item)]
    return [json.dumps(value)]


@given(letters, patterns)
def test_no_match_is_left_in_a_text(text, given):
    redactor = Redactor(given)

    shown = redactor.text(text)

    assert left(shown, given) == []
    assert (redactor.places > 0) == (shown != text)


@given(
    letters, st.lists(st.sampled_from([each for each in PATTERNS if "^" not in each]), min_size=1, max_size=3)
)
def test_no_match_is_left_in_a_text_that_is_escaped_for_json(text, given):
    escaped = json.dumps(json.dumps(text.replace("\ud800", "")))

    shown = Redactor(given).text(escaped)

    if shown == escaped:
        assert left(text, given) == []


@given(values, patterns)
def test_no_match_is_left_in_the_texts_of_a_value(value, given):
    shown = Redactor(given).value(value)

    assert [each for text in texts_of(shown) for each in left(text, given)] == []
    assert not isinstance(shown, dict) or all(not isinstance(each, dict | list) for each in shown.values())


@given(letters, patterns)
def test_a_text_is_redacted_once(text, given):
    once = Redactor(given).text(text)
    again = Redactor(given)

    assert again.text(once) == once
    assert again.places == 0


@given(letters)
def test_without_a_match_a_text_stays_as_it_is(text):
    redactor = Redactor(["zzz"])

    assert (redactor.text(text), redactor.places) == (text, 0)


@given(letters, patterns, st.integers(0, 40))
def test_a_cut_text_is_the_beginning_of_the_redacted_one(text, given, most):
    whole = Redactor(given).text(text)

    assert Redactor(given).cut(text, most) == (whole[:most], len(whole))


def test_a_secret_that_the_cut_would_halve_is_not_shown():
    redactor = Redactor(["sk-[a-z]{20}"])

    assert redactor.cut("key sk-" + "abcde" * 4 + " later sk-" + "z" * 20, 15) == ("key [redacted] ", 31)
    assert redactor.places == 1


@pytest.mark.parametrize(
    ("pattern", "given", "shown"),
    [
        ('p"w', {"body": '{"password": "p\\"w"}'}, {"body": '{"password": "[redacted]"}'}),
        ("Zürich", {"body": r"{\"city\": \"Z\\u00fcrich\"}"}, {"body": r"{\"city\": \"[redacted]\"}"}),
        ("\U0001f600", {"body": r"a\ud83d\ude00b"}, {"body": "a[redacted]b"}),
        ('"pin":[0-9]+', {"pin": 1234, "n": 5}, {"pin": MARK, "n": 5}),
        ("pin=[0-9]+", {"pin": 1234}, {"pin": MARK}),
        ("[0-9]{4}", {"pins": [1234, 5]}, {"pins": '["[redacted]",5]'}),
        ("key", {"key": 1, "KEY": 2, "my key": 3}, {MARK: 1, "KEY": 2, f"my {MARK}": 3}),
        ("k.", {"k1": 1, "k2": 2}, {MARK: 1, MARK + MARK: 2}),
    ],
)
def test_a_secret_is_found_in_arguments_however_it_is_written(pattern, given, shown):
    assert Redactor([pattern]).value(given) == shown


def test_every_text_of_a_record_is_redacted_except_the_words_of_fdstore():
    entry = ConversationEntry(
        position=1, kind="result", text="a result", tool="result_of", fds=("name:result.md",), call="result"
    )

    shown = Redactor(["result"]).record(entry, keep=frozenset({"kind"}))

    assert (shown.kind, shown.text, shown.tool) == ("result", "a [redacted]", "[redacted]_of")
    assert shown.fds == ("name:[redacted].md",)


@pytest.mark.thorough("a bound of time")
def test_a_pattern_that_would_not_end_elsewhere_ends_here():
    began = time.monotonic()

    Redactor(["(a*)*b", "(a|aa)+$"]).text("a" * 200_000 + "\\n" * 50_000)

    assert time.monotonic() - began < 20


@pytest.mark.thorough("a bound of time")
@pytest.mark.parametrize("pattern", ["[a-z]+", ".", "[0-9]", r"\bx"])
def test_a_line_with_very_many_matches_takes_little_time(pattern):
    began = time.monotonic()

    shown = Redactor([pattern]).text("ab1 x2;" * 40_000)

    assert time.monotonic() - began < 20
    assert MARK in shown
