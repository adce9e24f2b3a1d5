"""What differs within lines of a diff."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.inspector.web.changed_words import MAX_WORDS, changed_words
from fdstore.inspector.web.diff import DiffRow, RowKind, with_changes

LINES = st.text("ab ,\x1b[1m", max_size=40)


def marked(text: str, spans: list[tuple[int, int]]) -> list[str]:
    return [text[first:last] for first, last in spans]


@pytest.mark.parametrize(
    ("old", "new", "of_old", "of_new"),
    [
        ("width = 30 px", "width = 40 px", ["30"], ["40"]),
        ("a b c", "a c", ["b "], []),
        ("call(x)", "call(x, y)", [], [", y"]),
        ("one big red apple", "one small green apple", ["big red"], ["small green"]),
        ("from a to b", "from c to d", ["a", "b"], ["c", "d"]),
        ("equal", "equal", [], []),
        ("nothing of this", "is in that other line", [], []),
        ("x \x1b[31mred", "x \x1b[32mred", ["\x1b[31m"], ["\x1b[32m"]),
    ],
)
def test_words_that_differ_are_found(old: str, new: str, of_old: list[str], of_new: list[str]) -> None:
    spans = changed_words(old, new)

    assert (marked(old, spans[0]), marked(new, spans[1])) == (of_old, of_new)


def test_many_changes_of_a_long_line_are_one() -> None:
    old = "begin " * 200 + " ".join(f"a{n}" for n in range(MAX_WORDS)) + " end" * 200
    new = old.replace("a", "b")

    assert [len(spans) for spans in changed_words(old, new)] == [1, 1]


@given(LINES, LINES)
def test_without_the_changes_both_lines_are_the_same(old: str, new: str) -> None:
    of_old, of_new = changed_words(old, new)

    def rest(text: str, spans: list[tuple[int, int]]) -> str:
        ends = [0, *(at for span in spans for at in span), len(text)]
        assert ends == sorted(ends)
        return "".join("".join(text[a:b] for a, b in zip(ends[::2], ends[1::2], strict=True)).split())

    assert not (of_old or of_new) or rest(old, of_old) == rest(new, of_new)


def rows_of(*lines: tuple[RowKind, str]) -> list[DiffRow]:
    return with_changes([DiffRow(kind=kind, text=text) for kind, text in lines])


def test_lines_are_compared_with_those_that_took_their_places() -> None:
    rows = rows_of(
        *(("same", "x = 0"), ("removed", "a = 1"), ("removed", "b = 2")),
        *(("added", "a = 3"), ("added", "b = 4"), ("same", "y = 0"), ("removed", "c = 1")),
    )

    assert [row.changed for row in rows] == [(), *[((4, 5),)] * 4, (), ()]
    shown = [("".join(each.text for each in part.segments), part.is_changed) for part in rows[1].parts]
    assert shown == [("a = ", False), ("1", True)]


def test_a_last_line_without_line_break_is_compared_too() -> None:
    rows = rows_of(("removed", "a = 1"), ("no newline", ""), ("added", "a = 3"), ("no newline", ""))

    assert [row.changed for row in rows] == [((4, 5),), (), ((4, 5),), ()]


@pytest.mark.parametrize("kinds", ["raa", "rra", "ra!a", "ar"])
def test_lines_that_are_more_or_fewer_are_not_compared(kinds: str) -> None:
    named: dict[str, RowKind] = {"r": "removed", "a": "added", "!": "no newline"}
    rows = rows_of(*[(named[kind], "a = 1 2 3") for kind in kinds])

    assert all(not row.changed for row in rows)
