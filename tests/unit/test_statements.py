"""Pages name what they state of the code, and `make generate` writes it there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from fdstore_workers.sweeper import SWEEPER_S

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


DIRECT = STATEMENTS["direct_chars"]
WITHOUT_COMMENTS = {
    "fdstore/cli/claude_plugin.py": f"longer than {DIRECT} characters",
    "fdstore/cli/hook.py": f"An output of more than {DIRECT} characters",
    "fdstore/cli/space.py": f"expires after {STATEMENTS['staging_minutes']} minutes",
    "fdstore/cli/upkeep.py": f"(default: {STATEMENTS['retention_days']} days)",
    "fdstore/errors/base.py": f"is asked for again for {STATEMENTS['deadline_s']} s first",
    "fdstore/hosts/hooks/claude_plugin/README.md": f"more than {DIRECT} characters",
    "fdstore/hosts/hooks/claude_plugin/skills/fdstore/SKILL.md": f"more than {DIRECT} characters",
    "fdstore/hosts/project.py": f"default {DIRECT}",
    "fdstore/store/keys.py": f"the worker that sweeps now           expires ({SWEEPER_S:g} s)",
}
"""Texts whose reader would see a comment, or where it is no comment: a sentence of each."""


@pytest.mark.parametrize("name", WITHOUT_COMMENTS)
def test_a_text_that_cannot_have_comments_says_the_number_of_the_code(name: str) -> None:
    assert WITHOUT_COMMENTS[name] in (ROOT / name).read_text("utf-8")


def test_each_statement_is_made_and_every_page_says_what_it_says_now() -> None:
    named = set()
    for name, text in pages():
        assert (ROOT / name).read_text("utf-8") == text, f"{name} is stale: make generate"
        named |= set(re.findall(r"<!-- ([a-z][a-z0-9_]*) -->", text))

    assert named == set(STATEMENTS)
