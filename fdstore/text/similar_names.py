"""Names that are like a wrong one, for "did you mean".

`difflib` is quadratic in the length of names and has no bound, and those of a program are a model's: so long
names are not compared, and of many the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

MAX_CHARS = 40
"""The longest name that is compared, as in Python's own suggestions."""

MAX_COMPARED = 250


def similar_names(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return up to `most` of the known names that are like this one, the most similar first.

    >>> similar_names("lenght", ["length", "width"]), similar_names("x" * 8000, ["x" * 7999])
    (['length'], [])
    """
    if len(name) > MAX_CHARS:
        return []
    short = (each for each in known if len(each) <= MAX_CHARS)
    return get_close_matches(name, list(islice(short, MAX_COMPARED)), most)
