"""Appending to a growing text, or growing bytes, stores the same as storing the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.text.byte_pages import cut_bytes
from fdstore.text.growth import GrowingBytes, GrowingText, GrowthStep
from fdstore.text.index import IndexWriter, group_of
from fdstore.text.paging import Page, cut

texts = st.lists(
    st.sampled_from(["\n", "a", "line\n", "longer than a page ", "漢字\n", "\N{GRINNING FACE}"])
    | st.text(max_size=4),
    max_size=30,
)
sizes = st.integers(1, 9) | st.just(4000)


def expected_state(text: str, size: int) -> tuple[dict[int, bytes], dict[str, str], tuple[int, ...]]:
    """Return pages, index and totals of a text that is stored in one call."""
    pages: list[Page] = [page for run in cut(text, size) for page in run]
    index = IndexWriter()
    index.add(pages)
    totals = (index.chars, index.bytes, index.lines, index.pages)
    return {i: page.data for i, page in enumerate(pages, 1)}, index.fields(), totals


class StoredState:
    """The state of Redis after these changes."""

    def __init__(self) -> None:
        self.pages: dict[int, bytes] = {}
        self.index: dict[str, str] = {}
        self.totals: tuple[int, ...] = ()

    def take(self, change: GrowthStep) -> None:
        self.pages |= dict(enumerate(change.pages, change.first_page))
        self.index |= change.index
        self.totals = (change.chars, change.bytes, change.lines, change.page_count)

    @property
    def all(self) -> tuple[dict[int, bytes], dict[str, str], tuple[int, ...]]:
        return self.pages, self.index, self.totals


@given(pieces=texts, size=sizes)
def test_appending_in_pieces_stores_the_same_as_storing_the_whole_text(pieces: list[str], size: int) -> None:
    growth, stored, text = GrowingText(size), StoredState(), ""
    stored.take(growth.add(""))

    for piece in pieces:
        change = growth.add(piece)
        assert change.before == len(text)
        stored.take(change)
        text += piece
        assert stored.all == expected_state(text, size)


@given(pieces=texts, size=sizes)
def test_another_writer_can_continue_from_the_stored_state(pieces: list[str], size: int) -> None:
    stored, text = StoredState(), ""
    stored.take(GrowingText(size).add(""))

    for piece in pieces:
        last = max(stored.pages)
        group = stored.index[str(group_of(last))].encode()
        growth = GrowingText.resumed(size, last, stored.pages[last], stored.totals[1], group)
        assert growth.chars == len(text)
        stored.take(growth.add(piece))
        text += piece
        assert stored.all == expected_state(text, size)


@pytest.mark.parametrize("pages", [255, 256, 257, 512, 513])
def test_index_groups_are_right_at_their_boundaries(pages: int) -> None:
    growth, stored = GrowingText(3), StoredState()
    text = "ab\n" * (pages - 1) + "c"
    for start in range(0, len(text), 5):
        stored.take(growth.add(text[start : start + 5]))

    last = max(stored.pages)
    group = stored.index[str(group_of(last))].encode()
    resumed = GrowingText.resumed(3, last, stored.pages[last], stored.totals[1], group)
    stored.take(resumed.add("d\nlast"))

    assert stored.all == expected_state(text + "d\nlast", 3)


def test_a_change_contains_only_the_last_page_and_new_pages() -> None:
    growth = GrowingText(4)
    growth.add("one\ntwo\nthr")

    change = growth.add("ee\nfour\n")

    assert change.first_page == 3
    assert change.pages == (b"thre", b"e\n", b"four", b"\n")


@given(pieces=st.lists(st.binary(max_size=9), max_size=20), size=st.integers(1, 9))
def test_growing_bytes_store_the_same_as_bytes_stored_whole(pieces: list[bytes], size: int) -> None:
    growth, stored, data = GrowingBytes(size), StoredState(), b""
    stored.take(growth.add(b""))

    for piece in pieces:
        change = growth.add(piece)
        assert change.before == len(data)
        stored.take(change)
        data += piece
        whole = [page.data for run in cut_bytes(data, size) for page in run]
        assert stored.all == (dict(enumerate(whole, 1)), {}, (len(data), len(data), 0, len(whole)))
        growth = GrowingBytes.resumed(size, len(whole), whole[-1], len(data))
