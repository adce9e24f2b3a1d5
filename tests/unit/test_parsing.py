"""Tests of how the tests parse Python beside other threads."""

from __future__ import annotations

import ast
import gc

import pytest

from tests.thorough import thorough

SOURCE = "x = [(a + f(b, c=[d]))]"


class ParsesWhenItEnds:
    """A cycle, which the garbage collector ends at a moment of its own."""

    def __init__(self, most: int) -> None:
        self.itself = self
        self.most = most

    def __del__(self) -> None:
        ast.parse("a")
        if self.most > 1:
            ParsesWhenItEnds(self.most - 1)


@pytest.mark.parametrize("disturbances", [1, *thorough("more of them", 3)])
def test_a_parse_that_is_disturbed_is_repeated(disturbances: int) -> None:
    thresholds = gc.get_threshold()
    expected = ast.dump(ast.parse(SOURCE))
    try:
        for allocations in range(1, 60):
            gc.collect()
            ParsesWhenItEnds(disturbances)
            gc.set_threshold(allocations)
            tree = ast.parse(SOURCE)
            gc.set_threshold(*thresholds)
            assert ast.dump(tree) == expected
    finally:
        gc.set_threshold(*thresholds)


def test_a_wrong_source_is_refused_as_usual() -> None:
    with pytest.raises(SyntaxError, match="never closed"):
        ast.parse("f(")
