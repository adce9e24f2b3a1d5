"""Rows of text: what a screen would hide or obey is visible."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fdstore.inspector.web.descriptor_rows import TextRow, rows_of, segments_of, visible_text
from fdstore.text.layout import show_controls


def parts(text: str, **options: object) -> list[tuple[str, str]]:
    [row] = rows_of(text, 1, 1, **options)  # type: ignore[arg-type]
    return [(each.kind, each.text) for each in row.segments]


def test_control_characters_escapes_and_bidirectional_controls_are_segments_of_their_own() -> None:
    assert parts("a\x1b[31mb\x00\x07c\u202ed\u200be\r") == [
        ("", "a"), ("ansi", "ESC[31m"), ("", "b"), ("ctl", "NULBEL"), ("", "c"), ("bidi", "U+202E"),
        ("", "d"), ("wide", "U+200B"), ("", "e"), ("ctl", "CR"),
    ]  # fmt: skip


def test_terminal_titles_and_lone_escapes_are_visible() -> None:
    assert parts("\x1b]0;title\x07x\x1b") == [("ansi", "ESC]0;titleBEL"), ("", "x"), ("ctl", "ESC")]


def test_raw_text_is_exact() -> None:
    assert parts("a\x1b[31m\u202e", raw=True) == [("", "a\x1b[31m\u202e")]


def test_tabs_and_composed_emoji_stay() -> None:
    assert parts("\t\U0001f469\u200d\U0001f4bb") == [("", "\t\U0001f469\u200d\U0001f4bb")]


@given(st.text())
def test_no_text_leaves_a_control_character(text: str) -> None:
    line = text.replace("\n", "")

    shown = "".join(each.text for each in segments_of(line))

    assert show_controls(shown, keep="\t") == shown
    assert show_controls(visible_text(text), keep="") == visible_text(text)


def test_rows_are_numbered_from_the_first_line_and_a_continued_one_has_no_number() -> None:
    rows = rows_of("end\nnext\nlast", 7, 100, continued=True)

    assert [(row.number, row.line) for row in rows] == [(None, 7), (8, 8), (9, 9)]


def test_a_range_of_characters_is_marked_over_lines() -> None:
    rows = rows_of("one\ntwo\n", 1, 11, chars=(13, 15))

    assert [marked(row) for row in rows] == ["e", "t"]


def test_a_range_of_lines_is_on() -> None:
    assert [row.on for row in rows_of("a\nb\nc\n", 5, 1, lines=(6, 6))] == [False, True, False]


@given(st.text(), st.integers(1, 60), st.integers(0, 60))
def test_marked_segments_are_the_range(text: str, first: int, count: int) -> None:
    rows = rows_of(text, 1, 1, chars=(first, first + count - 1), raw=True)

    wanted = text[first - 1 : first - 1 + count].replace("\n", "")
    assert "".join(map(marked, rows)) == wanted


def marked(row: TextRow) -> str:
    return "".join(each.text for each in row.segments if "mark" in each.kind)
