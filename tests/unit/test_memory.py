"""The bound of a test's memory holds for the call alone, and fails when the call takes more."""

from __future__ import annotations

import pytest

from tests.memory import ATTEMPTS, assert_takes_less


def test_what_another_thread_takes_meanwhile_is_not_of_the_call() -> None:
    attempts: list[int] = []

    def call(attempt: int) -> None:
        attempts.append(attempt)
        assert bytearray(1_000_000 if attempt == 0 else 1000)

    assert_takes_less(10_000, call)
    assert attempts == [0, 1]


def test_a_call_that_takes_more_each_time_fails() -> None:
    attempts: list[int] = []

    def call(attempt: int) -> None:
        attempts.append(attempt)
        assert bytearray(1_000_000)

    with pytest.raises(AssertionError, match="not less than 10000"):
        assert_takes_less(10_000, call)
    assert attempts == list(range(ATTEMPTS))
