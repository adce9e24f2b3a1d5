"""The words of a text, by which the search of runs finds it."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from fdstore.text.words import MAX_QUERY_WORDS, MAX_WORD_CHARS, MAX_WORDS, query_words, words_of

ANY_TEXT = st.text(st.characters(codec=None), max_size=300)  # with lone surrogates
PIECES = st.lists(
    st.sampled_from(
        ["Straße", "build-log.md", "検索語", "かな", "ﬁle", "İ", "x" * 50, "_", ".", " ", "\0", "\ud800", "/"]
    )
).map("".join)


@given(st.one_of(ANY_TEXT, PIECES))
def test_words_are_few_short_folded_and_can_be_stored(text: str) -> None:
    words = words_of(text)

    assert len(words) == len(set(words)) <= MAX_WORDS
    for word in words:
        assert 1 <= len(word) <= MAX_WORD_CHARS
        assert word[0].isalnum()
        assert not any(char.isspace() or unicodedata.category(char) in ("Cc", "Cs") for char in word)
        assert word.encode()


@given(st.one_of(ANY_TEXT, PIECES), st.data())
def test_a_text_is_found_by_each_of_its_words(text: str, data: st.DataObject) -> None:
    words = words_of(text)
    for asked in words:
        assert all(any(word.startswith(each) for word in words) for each in query_words(asked))


@given(st.one_of(ANY_TEXT, PIECES))
def test_a_query_has_few_words_and_a_text_is_found_by_itself(text: str) -> None:
    asked = query_words(text)

    assert len(asked) <= MAX_QUERY_WORDS
    words = words_of(text)
    if len(words) < MAX_WORDS:
        assert all(any(word.startswith(each) for word in words) for each in asked)


def test_case_and_compatible_forms_make_no_difference() -> None:
    assert words_of("STRASSE ﬁle Ｂｕｉｌｄ") == words_of("Straße FILE build") == ["strasse", "file", "build"]


def test_the_parts_of_a_name_are_words() -> None:
    assert words_of("https://example.org/a/tree_token.csv?x=1") == [
        *("https", "example.org", "org", "a", "tree_token.csv", "token.csv", "csv", "x", "1"),
    ]
    assert query_words("tree_token.csv") == ["tree_token.csv"]


def test_a_word_of_a_text_without_blanks_is_found_anywhere() -> None:
    words = words_of("全文検索の例")

    assert all(each in words for each in query_words("検索"))
    assert query_words("例") == ["例"]
    assert "例" in words


def test_a_long_word_is_found_by_its_beginning_and_the_first_words_of_a_long_text_count() -> None:
    assert words_of("x" * 100) == query_words("x" * 100) == ["x" * MAX_WORD_CHARS]
    assert words_of(" ".join(f"w{number}" for number in range(1000))) == [
        f"w{number}" for number in range(MAX_WORDS)
    ]
    assert words_of(" \t_-./\0") == query_words("*") == []
