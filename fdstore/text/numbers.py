"""Whole numbers: what every reader keeps exactly, and how people write them with a unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

MAX_INTEGER = 2**53
"""JSON readers, Lua and Redis's sorted sets hold numbers as doubles: exact up to here."""

BYTE_UNITS: Mapping[str, int] = {"": 1, "b": 1} | {
    f"{letter}{kind}b": base**power
    for power, letter in enumerate("kmgt", 1)
    for kind, base in (("", 1000), ("i", 1024))
}
DURATION_UNITS: Mapping[str, int] = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
"""In seconds."""

COUNT_UNITS: Mapping[str, int] = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}

_NUMBER = re.compile(r"([0-9]{1,16}(?:\.[0-9]{1,6})?) ?([A-Za-z]*)")


def parse_number(written: str, units: Mapping[str, int]) -> int | None:
    """Return the number that a text means, None if it means none. Only units above 1 may have fractions.

    >>> parse_number("1.5GiB", BYTE_UNITS), parse_number("20k", COUNT_UNITS), parse_number("1.5", BYTE_UNITS)
    (1610612736, 20000, None)
    """
    found = _NUMBER.fullmatch(written)
    factor = units.get(found[2].lower()) if found else None
    if found is None or factor is None or (factor == 1 and "." in found[1]):
        return None
    return int(Decimal(found[1]) * factor)
