"""What all regular expressions of the packages have in common."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fdstore
import fdstore_workers

# Of one character it is right in every version: `[^"]*+`, and also where a class is put together: `{_A}]*+`.
POSSESSIVE_GROUP = re.compile(r"""(?<!\()\)(?:[*+?]|\{[0-9,]*\})\+(?!=)|\(\?>|(?<!\w)\{_[A-Z_]+\}[*+?]\+""")
SOURCES = [
    path
    for package in (fdstore, fdstore_workers)
    for path in Path(package.__file__ or "").parent.rglob("*.py")
]


@pytest.mark.parametrize("pattern", ["(?:a|b)*+", "(a)++", "(?:a?b){2,3}+", "(?>a|b)", "{_STRING}*+"])
def test_a_possessive_group_is_seen(pattern: str) -> None:
    assert POSSESSIVE_GROUP.search(pattern)


@pytest.mark.parametrize("pattern", ['[^"]*+', "a++(?:b*+c)*", r"\d{2}[{_X}]*+", r"(a)\++", "(a)+ +b"])
def test_any_other_repetition_is_none(pattern: str) -> None:
    assert not POSSESSIVE_GROUP.search(pattern)


def test_no_pattern_repeats_a_group_possessively_which_python_3_11_2_matches_wrongly() -> None:
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in SOURCES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if POSSESSIVE_GROUP.search(line)
    ]

    assert found == []
