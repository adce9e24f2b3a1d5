"""The texts of a list of blocks that are stored, and those of them that are stored together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.results.block_groups import groups_to_store

LIMIT = 10


def is_long(text: str) -> bool:
    return len(text) > LIMIT


def groups(*lengths: int | None) -> list[tuple[int, ...]]:
    """The groups of texts of these lengths; None is a block without a text."""
    return groups_to_store([None if length is None else "x" * length for length in lengths], is_long)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ((), []),
        ((10,), []),
        ((11,), [(0,)]),
        ((4, 11, 4), [(1,)]),
        ((11, 12), [(0,), (1,)]),
        ((5, 5), [(0, 1)]),
        ((4, 5), []),
        ((5, 0, 5), [(0, 2)]),
        ((5, 5, 11, 4), [(0, 1), (2,)]),
        ((4, 11, 5, 5), [(1,), (2, 3)]),
        ((5, 5, None, 6, 6), [(0, 1), (3, 4)]),
        ((6, 11, 6), [(0, 2), (1,)]),
        ((6, None, 6), [(0, 2)]),
        ((1, None, 1, None, 1), []),
        ((None, 0, None), []),
    ],
)
def test_long_texts_are_stored_alone_and_short_ones_only_together(
    lengths: tuple[int | None, ...], expected: list[tuple[int, ...]]
) -> None:
    assert groups(*lengths) == expected


@given(st.lists(st.none() | st.text("ab", max_size=15)))
def test_no_more_stays_inline_than_of_one_text(texts: list[str | None]) -> None:
    found = groups_to_store(texts, is_long)

    stored = [number for group in found for number in group]
    assert len(stored) == len(set(stored))
    assert not is_long("\n".join(text for n, text in enumerate(texts) if text and n not in stored))
    assert found == sorted(found)
    for group in found:
        members = [texts[number] or "" for number in group]
        assert is_long("\n".join(members))
        assert len(group) == 1 or all(0 < len(text) <= LIMIT for text in members)


@given(st.lists(st.none() | st.text("ab", max_size=15)))
def test_what_is_not_long_together_is_never_joined(texts: list[str | None]) -> None:
    short = [text for text in texts if text and not is_long(text)]

    if not is_long("\n".join(short)):
        assert all(len(group) == 1 for group in groups_to_store(texts, is_long))
