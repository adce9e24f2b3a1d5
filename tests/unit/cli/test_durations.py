"""Durations on the command line."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.cli.durations import DURATION, UNITS_S


@given(number=st.integers(0, 10**9 - 1), unit=st.sampled_from(sorted(UNITS_S)))
def test_a_number_with_a_unit_is_so_many_seconds(number, unit):
    assert DURATION.convert(f"{number}{unit}", None, None) == number * UNITS_S[unit]


def test_fractions_and_seconds_that_were_converted_before_are_accepted():
    assert DURATION.convert("1.5h", None, None) == 5400.0
    assert DURATION.convert(90.0, None, None) == 90.0


@pytest.mark.parametrize(
    "text", ["", "5", "h", "-5m", "5 m", "5w", "1e3s", "\u0665m", "5m\n", "9" * 20 + "s"]
)
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(click.BadParameter, match="is not a duration such as 90s, 30m, 12h or 7d"):
        DURATION.convert(text, None, None)
