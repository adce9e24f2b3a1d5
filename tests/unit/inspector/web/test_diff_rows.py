"""The rows of a diff, however its bytes come in pieces."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.inspector.web.diff import MAX_LINE_CHARS, DiffRow, DiffRows

LINES = st.lists(st.sampled_from(["a", "bé", "-- x", "@@ -1 +1 @@", "\\ No", "", "漢 +"]), max_size=12)


def rows_of(*pieces: bytes) -> list[DiffRow]:
    collected = DiffRows()
    for piece in pieces:
        collected.feed(piece)
    return collected.rows


def unified(old: list[str], new: list[str]) -> bytes:
    lines = difflib.unified_diff(old, new, "fd:1", "fd:2", lineterm="", n=1)
    return "".join(f"{line}\n" for line in lines).encode()


@given(LINES, LINES, st.lists(st.integers(1, 9), max_size=40))
def test_each_row_has_the_text_and_the_numbers_of_its_line(old, new, sizes):
    diff, pieces = unified(old, new), []
    at = 0
    for size in sizes:
        pieces.append(diff[at : at + size])
        at += size

    rows = rows_of(*pieces, diff[at:])

    assert rows == rows_of(diff)
    for row in rows:
        if row.old is not None:
            assert old[row.old - 1] == row.text
        if row.new is not None:
            assert new[row.new - 1] == row.text
    kept = (
        {row.old for row in rows if row.kind == "removed"},
        {row.new for row in rows if row.kind == "added"},
    )
    assert [line for at, line in enumerate(old, 1) if at not in kept[0]] == [
        line for at, line in enumerate(new, 1) if at not in kept[1]
    ]


def test_a_long_line_is_cut_while_it_comes():
    long = b"x" * 5000

    rows = rows_of(b"--- a\n+++ b\n@@ -1 +1 @@\n-", long, long, b"\n+y\n\\ No newline at end of file\n")

    assert [(row.kind, len(row.text), row.left_out) for row in rows] == [
        ("hunk", 11, 0),
        ("removed", MAX_LINE_CHARS, 10_000 - MAX_LINE_CHARS),
        ("added", 1, 0),
        ("no newline", 0, 0),
    ]


@pytest.mark.parametrize(
    ("heading", "numbers"), [("@@ -0,0 +1 @@", (None, 1)), ("@@ -4,0 +5,2 @@", (None, 5))]
)
def test_an_addition_is_numbered_from_the_line_before_it(heading, numbers):
    [_, row] = rows_of(f"--- a\n+++ b\n{heading}\n+x\n".encode())

    assert (row.old, row.new) == numbers


def test_what_a_screen_would_hide_is_visible():
    [_, row] = rows_of(b"--- a\n+++ b\n@@ -1 +1 @@\n-\x1b[31m<b>\n")

    assert [each.kind for each in row.parts[0].segments] == ["ansi", ""]
