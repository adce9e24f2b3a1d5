"""2000 tests, one for each quantity; one fails."""

import unittest
from collections.abc import Callable

from prices import price


class Prices(unittest.TestCase):
    """A larger order never costs less."""


def compare(pieces: int) -> Callable[[Prices], None]:
    def test(self: Prices) -> None:
        assert price(pieces) > price(pieces - 1), f"{pieces} pieces cost less than {pieces - 1}"

    return test


for pieces in range(1, 2001):
    setattr(Prices, f"test_{pieces:04}_pieces", compare(pieces))
