"""A diff is true whatever work is allowed, short where it may be, and found in bounded time."""

from __future__ import annotations

import difflib
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.text.line_diff import LineChange, find_changes, group_hunks, hunk_heading

LINES = st.lists(st.integers(0, 4), max_size=30)


def applied(old: list[int], new: list[int], changes: list[LineChange]) -> list[int]:
    """Return what the changes make of the old lines."""
    made: list[int] = []
    at = 0
    for change in changes:
        made += old[at : change.first]
        assert len(made) == change.new_first
        made += new[change.new_first : change.new_last]
        at = change.last
    return made + old[at:]


@given(LINES, LINES, st.sampled_from([0, 20, 200, 10_000]))
def test_the_changes_make_the_new_text_of_the_old_one(old: list[int], new: list[int], work: int) -> None:
    changes = find_changes(old, new, work)

    assert applied(old, new, changes) == new
    assert (old == new) == (not changes)


@given(st.integers(0, 30), st.lists(st.integers(0, 30), max_size=5))
def test_lines_that_were_inserted_are_all_that_is_shown(lines: int, inserted: list[int]) -> None:
    old = list(range(lines))
    new = list(old)
    for number, at in enumerate(inserted):
        new.insert(at, 100 + number)

    changes = find_changes(old, new)

    assert sum(change.last - change.first for change in changes) == 0
    assert sum(change.new_last - change.new_first for change in changes) == len(inserted)


@given(LINES, LINES, st.integers(0, 4))
def test_the_headings_are_those_of_difflib_for_the_same_changes(
    old: list[int], new: list[int], context: int
) -> None:
    changes = find_changes(old, new)
    hunks = list(group_hunks(changes, len(old), len(new), context))

    class Known(difflib.SequenceMatcher[Any]):
        def get_opcodes(self) -> Any:
            codes, at, new_at = [], 0, 0
            for change in changes:
                if at < change.first:
                    codes.append(("equal", at, change.first, new_at, change.new_first))
                codes.append(("replace", *change))
                at, new_at = change.last, change.new_last
            return [*codes, ("equal", at, len(old), new_at, len(new))] if at < len(old) else codes

    groups = list(Known(None, old, new).get_grouped_opcodes(context)) if changes else []
    assert [(hunk.old.start, hunk.old.stop, hunk.new.start, hunk.new.stop) for hunk in hunks] == [
        (group[0][1], group[-1][2], group[0][3], group[-1][4]) for group in groups
    ]


def test_a_heading_names_the_line_before_an_empty_range() -> None:
    [added] = group_hunks([LineChange(4, 4, 4, 6)], 9, 11, 0)

    assert hunk_heading(added) == "@@ -4,0 +5,2 @@"
    assert hunk_heading(added, 101, 1) == "@@ -104,0 +5,2 @@"


SIZE = 50_000
RANDOM = random.Random(17)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (list(range(SIZE)), list(range(SIZE, 2 * SIZE))),
        (list(range(SIZE)), list(range(SIZE))[::-1]),
        ([1] * SIZE, [1, 2] * (SIZE // 2)),
        (RANDOM.choices(range(3), k=SIZE), RANDOM.choices(range(3), k=SIZE)),
    ],
    ids=["nothing equal", "reversed", "few different lines", "random"],
)
def test_the_work_is_bounded_for_what_difflib_would_never_finish(old: list[int], new: list[int]) -> None:
    class Counted(list[int]):
        looks = 0

        def __getitem__(self, at: Any) -> Any:
            Counted.looks += 1
            found = super().__getitem__(at)
            return Counted(found) if isinstance(at, slice) else found

    changes = find_changes(Counted(old), new, 300_000)

    assert applied(old, new, changes) == new
    assert Counted.looks < 1_000_000
