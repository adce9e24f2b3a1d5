"""Excerpts have the words that were looked for, and are cut between words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fdstore.text.excerpts import WordExcerpt, excerpt_around


def shown(query: str, text: str, chars: int = 60) -> str:
    found = excerpt_around(query, text, chars)
    return "".join(f"[{part}]" if is_marked else part for part, is_marked in found.parts)


def test_words_and_longer_ones_that_begin_so_are_marked_in_any_case() -> None:
    assert shown("REFUND may", "Refunds of May; no prerefund\tmaybe") == (
        "[Refund]s of [May]; no prerefund [may]be"
    )
    assert shown("日本", "これは日本語です") == "これは[日本]語です"
    assert shown("log.md", "docs/Build-Log.md") == "docs/Build-[Log.md]"


def test_a_long_text_is_cut_between_words_around_the_first_match() -> None:
    text = "one two three four five six seven eight nine ten " * 20 + "refund " + "eleven twelve " * 40

    found = shown("refund", text)

    assert (found[0], found[-1]) == ("…", "…")
    assert "[refund]" in found
    assert set(found.strip("…").replace("[", "").replace("]", "").split()) <= set(text.split())


def test_a_text_without_the_words_has_its_beginning() -> None:
    assert excerpt_around("absent", "one two") == WordExcerpt(text="one two")
    assert excerpt_around("", "x" * 100, 10).text == "x" * 10 + "…"


@given(st.text(), st.text(), st.integers(10, 80))
def test_marks_are_within_the_text_and_in_order(query: str, text: str, chars: int) -> None:
    found = excerpt_around(query, text, chars)

    assert "".join(part for part, _ in found.parts) == found.text
    assert len(found.text) <= chars + 2
    assert all(0 <= start < end <= len(found.text) for start, end in found.marks)
    assert [*found.marks] == sorted(found.marks)
