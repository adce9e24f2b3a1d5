"""The failures and losses of the last hour, as a tree counts them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fdstore.store.trees.troubles import Troubles, decode_troubles, sum_troubles
from fdstore.wire.script_constants import TROUBLE_SPAN_S, TROUBLE_SPANS


@given(st.binary(max_size=3000))
def test_a_field_of_any_bytes_gives_a_bounded_number_of_spans(field: bytes) -> None:
    assert len(decode_troubles(field)) <= 2 * TROUBLE_SPANS


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 9), st.integers(0, 9)), max_size=TROUBLE_SPANS))
def test_what_is_older_than_an_hour_or_of_the_future_counts_no_more(
    spans: list[tuple[int, int, int]],
) -> None:
    field = " ".join(":".join(map(str, each)) for each in spans).encode()
    recent = [each for each in spans if 50 - TROUBLE_SPANS < each[0] <= 50]

    counted = sum_troubles(decode_troubles(field), 50.5 * TROUBLE_SPAN_S)

    assert counted == (sum(each[1] for each in recent), sum(each[2] for each in recent))


def test_the_spans_make_an_hour() -> None:
    assert TROUBLE_SPAN_S * TROUBLE_SPANS == 3600


def test_what_is_no_span_is_left_out() -> None:
    assert decode_troubles(b"7:1:0 x 8:2 9:0:3:4 ") == (Troubles(7, 1, 0),)
    assert decode_troubles(None) == ()
