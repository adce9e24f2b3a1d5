"""The least and the greatest of values that have an order: numbers, and dates that are written alike."""

from __future__ import annotations

import re
from collections.abc import Collection

_DATE = re.compile(r"\d{4}-[01]\d-[0-3]\d(?:[T ][0-2]\d:[0-5]\d(?::[0-6]\d(?:\.\d{1,9})?)?Z?)?", re.ASCII)


def between(least: str, greatest: str) -> str:
    """Return the two for display.

    >>> between("1", "9"), between("1", "1")
    ('1 to 9', 'all 1')
    """
    return f"all {least}" if least == greatest else f"{least} to {greatest}"


def are_dates(texts: Collection[str]) -> bool:
    """Return whether the texts are dates, or times of days, of one form. Their order is then that of texts.

    >>> are_dates(["2026-11-29", "2024-02-01"]), are_dates(["2026-11-29", "2024-02-01 12:30"])
    (True, False)
    """
    forms = {(len(text), text[10:11], text.endswith("Z")) for text in texts}
    return len(forms) == 1 and all(map(_DATE.fullmatch, texts))
