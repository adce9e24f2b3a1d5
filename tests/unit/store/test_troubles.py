"""The failures and losses of the last hour, as a tree counts them."""

from __future__ import annotations

import re
from importlib import resources

from hypothesis import given
from hypothesis import strategies as st

from fdstore.store.trees.troubles import SPAN_S, SPANS, Troubles, decode_troubles, sum_troubles


@given(st.binary(max_size=3000))
def test_a_field_of_any_bytes_gives_a_bounded_number_of_spans(field: bytes) -> None:
    assert len(decode_troubles(field)) <= 2 * SPANS


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 9), st.integers(0, 9)), max_size=SPANS))
def test_what_is_older_than_an_hour_or_of_the_future_counts_no_more(
    spans: list[tuple[int, int, int]],
) -> None:
    field = " ".join(":".join(map(str, each)) for each in spans).encode()
    recent = [each for each in spans if 50 - SPANS < each[0] <= 50]

    counted = sum_troubles(decode_troubles(field), 50.5 * SPAN_S)

    assert counted == (sum(each[1] for each in recent), sum(each[2] for each in recent))


def test_the_script_and_the_sweep_mean_the_same_spans() -> None:
    script = (resources.files("fdstore.store") / "lua" / "common.lua").read_text("utf-8")

    constants = dict(re.findall(r"(?m)^local (TROUBLE_\w+) = (\d+)", script))
    assert constants == {"TROUBLE_SPAN_S": str(SPAN_S), "TROUBLE_SPANS": str(SPANS)}
    assert SPAN_S * SPANS == 3600


def test_what_is_no_span_is_left_out() -> None:
    assert decode_troubles(b"7:1:0 x 8:2 9:0:3:4 ") == (Troubles(7, 1, 0),)
    assert decode_troubles(None) == ()
