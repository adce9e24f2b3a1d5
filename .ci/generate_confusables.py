"""Makes `fdstore/elements/confusables.py` of the table of Unicode Technical Standard #39: `make generate`.

    python .ci/generate_confusables.py            writes it
    python .ci/generate_confusables.py --check    exits with 1 if it is stale, and names it

The package `confusable-homoglyphs` has the table, confusables.txt, as a map from each string to those that
look like it. Two strings are confusable if the standard gives them the same skeleton: then they are connected
in that map. Only the rows for characters of the names of our elements are kept.
"""

from __future__ import annotations

import sys
import unicodedata

from confusable_homoglyphs.confusables import confusables_data
from generated_files import update

from fdstore.elements.kinds import TAG_STARTS

CHARACTERS = "</" + "".join(sorted({*"".join(TAG_STARTS), *"rn"}))
"""The characters of a tag of ours; and of rn, which looks like m."""

MODULE = "fdstore/elements/confusables.py"

HEADER = '''"""Characters that look like those of our elements, by Unicode Technical Standard #39.

Generated from the package confusable-homoglyphs by `make generate`: change .ci/generate_confusables.py.
"""

CONFUSABLES = {
'''

DIRECTION_MARK = "\u200e"
"""It surrounds right-to-left characters in the table of the standard."""

LINE_LENGTH, POINTS_IN_LINE = 110, 10


def connected(start: str) -> set[str]:
    """Return the strings with the same skeleton as `start`."""
    found, rest = {start}, [start]
    while rest:
        for row in confusables_data.get(rest.pop(), []):
            if row["c"] not in found:
                found.add(row["c"])
                rest.append(row["c"])
    return {string.replace(DIRECTION_MARK, "") for string in found}


def look_alikes_of(char: str) -> list[str]:
    """Return the characters that look like `char` or its capital, in either case, but not those that Unicode
    normalization already makes `char`.

    >>> [each for each in look_alikes_of("l") if each.isascii()]
    ['1', 'I', 'i', '|']
    """
    strings = connected(char) | connected(char.upper())
    cases = strings | {case for each in strings for case in cases_of(each)}
    return sorted(case for case in cases if len(case) == 1 and fold(case) != char)


def cases_of(char: str) -> set[str]:
    """Return a character in both cases; only itself if its capital is that of another one, as of a long s."""
    return {case for case in (char.lower(), char.upper()) if char in (case.lower(), case.upper())}


def fold(char: str) -> str:
    return unicodedata.normalize("NFKC", char).casefold()


def module() -> str:
    """Return the text of the module."""
    rows = []
    for char in CHARACTERS:
        points = [code_point(each) for each in look_alikes_of(char)]
        row = f'    "{char}": "{"".join(points)}",\n'
        if len(row) > LINE_LENGTH:
            lines = (points[i : i + POINTS_IN_LINE] for i in range(0, len(points), POINTS_IN_LINE))
            row = (
                f'    "{char}": (\n' + "".join(f'        "{"".join(line)}"\n' for line in lines) + "    ),\n"
            )
        rows.append(row)
    return HEADER + "".join(rows) + "}\n"


def code_point(char: str) -> str:
    """Return a character as it is written in a literal."""
    if char.isascii():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


if __name__ == "__main__":
    sys.exit(update([(MODULE, module())], check="--check" in sys.argv[1:]))
