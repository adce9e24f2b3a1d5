"""A search that finds nothing learns what the text has instead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.text.near_misses import MAX_CHARS, NearMiss, NearMisses


def near(pattern: str, text: str, *, ignore_case: bool = False, piece: int = 7) -> NearMiss:
    found = NearMisses(pattern, ignore_case=ignore_case)
    data = text.encode()
    for start in range(0, len(data), piece):
        found.feed(data[start : start + piece])
    return found.finish()


@pytest.mark.parametrize(
    ("pattern", "text", "word"),
    [
        ("conection", "a lost connection, twice", "connection"),
        ("connnection", "connection", "connection"),
        ("recieve", "x\nto Receive.\n", "Receive"),
        ("timeouts", "(timeout)", "timeout"),
        ("read_timeout", "no read timeout set", "read timeout"),
        ("naive idea", "eine naïve idea.", "naïve idea"),
        ("Straße", "die Strase 7", "Strase"),
        ("conection", "connections", ""),  # two letters
        ("conection", "disconnection", ""),
        ("warn", "warm", ""),  # short words are like too many
        ("error 4711", "error 4712", ""),  # another number is another thing
        ("con.ction", "connection", ""),  # no plain word
        ("x" * MAX_CHARS + "y", "x" * MAX_CHARS + "z", ""),
    ],
)
def test_a_similar_word_is_found(pattern: str, text: str, word: str) -> None:
    assert near(pattern, text) == NearMiss(word=word)


def test_another_case_comes_before_another_word() -> None:
    assert near("error", "terror\nErrors\nERROR\nnone") == NearMiss(ignoring_case=3)
    assert near("e.ror$", "ERROR\nErrors") == NearMiss(ignoring_case=1)


def test_where_case_is_ignored_already_only_words_are_looked_for() -> None:
    assert NearMisses("conection", ignore_case=True).can_be
    assert not NearMisses("con+", ignore_case=True).can_be
    assert near("conection", "CONNECTION", ignore_case=True) == NearMiss(word="CONNECTION")


def test_a_letter_beyond_ascii_is_one_of_its_word() -> None:
    assert near("aaaða", "1 aaðaða; 2") == NearMiss(word="aaðaða")
    assert near("größer", "groß, die größen") == NearMiss(word="größen")


letters = st.sampled_from("abcéðß")


@given(
    word=st.text(letters, min_size=5, max_size=12),
    other=letters,
    at=st.integers(0, 12),
    piece=st.integers(1, 9),
)
def test_each_word_with_one_letter_changed_left_out_or_added_is_found(
    word: str, other: str, at: int, piece: int
) -> None:
    at %= len(word)
    changed = {word[:at] + other + word[at + 1 :], word[:at] + word[at + 1 :]}
    if at:
        changed.add(word[:at] + other + word[at:])

    for each in changed:
        found = near(word, f"1 {each}; 2", piece=piece)
        assert found.ignoring_case or found.word == each
