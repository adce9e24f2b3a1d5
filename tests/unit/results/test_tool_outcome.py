"""The time that a call may still wait."""

from __future__ import annotations

import pytest

from fdstore.results.tool_outcome import Started


@pytest.mark.parametrize(
    ("now_s", "left_s"),
    [(100.0, 60.0), (130.0, 30.0), (170.0, -10.0), (-3500.0, 60.0)],
    ids=["at once", "later", "too late", "the clock was set back"],
)
def test_a_wait_ends_after_its_seconds_whatever_the_clock(now_s: float, left_s: float) -> None:
    assert Started(("triage.1",), until_s=160.0, seconds=60.0).left_s(now_s) == left_s


def test_a_call_without_seconds_waits_for_the_end() -> None:
    assert Started(("triage.1",)).left_s(0.0) is None
