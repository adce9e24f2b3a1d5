"""Pages name what they state of the code, and `make generate` writes it there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / ".ci"))

from generate_statements import fill, pages  # noqa: E402
from reference.statements import STATEMENTS  # noqa: E402

NUMBERS = {"lease_s": "15", "limits": "| a | b |\n|---|---|"}


def test_a_number_in_a_sentence_is_written() -> None:
    assert fill("up to <!-- lease_s -->9<!-- / --> s, or <!-- lease_s --><!-- / -->", NUMBERS) == (
        "up to <!-- lease_s -->15<!-- / --> s, or <!-- lease_s -->15<!-- / -->"
    )


def test_a_table_stands_on_lines_of_its_own() -> None:
    assert fill("<!-- limits -->\n| old |\n<!-- / -->\n", NUMBERS) == (
        "<!-- limits -->\n| a | b |\n|---|---|\n<!-- / -->\n"
    )


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("<!-- leese_s -->9<!-- / -->", "no statement has the name 'leese_s'"),
        ("<!-- lease_s -->9 s, <!-- lease_s -->9<!-- / -->", "'lease_s' has no end"),
        ("<!-- lease_s -->9", "stands alone"),
        ("9<!-- / -->", "stands alone"),
    ],
)
def test_a_comment_that_is_not_a_statement_is_refused(page: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        fill(page, NUMBERS)


def test_each_statement_is_made_and_every_page_says_what_it_says_now() -> None:
    named = set()
    for name, text in pages():
        assert (ROOT / name).read_text("utf-8") == text, f"{name} is stale: make generate"
        named |= set(re.findall(r"<!-- ([a-z][a-z0-9_]*) -->", text))

    assert named == set(STATEMENTS)
