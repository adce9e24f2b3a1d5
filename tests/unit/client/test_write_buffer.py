"""The reason of a stream that breaks because its writer failed."""

from __future__ import annotations

import pytest

from fdstore.client.write_buffer import reason_of


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no such line"), "ValueError: no such line"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (OSError("\ud800" + "x" * 300), "OSError: ?" + "x" * 190),
    ],
)
def test_the_reason_of_an_exception_is_short_and_can_be_stored(error: BaseException, reason: str) -> None:
    assert reason_of(error) == reason
