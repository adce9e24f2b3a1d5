"""Rows of text: what a screen would hide or obey is visible."""

from __future__ import annotations

import pytest
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


LOG = [
    *("12:00:01 INFO begins", "12:00:01 DEBUG reads", "12:00:02 WARN slow"),
    *("12:00:03 \x1b[31mERROR\x1b[0m gone", "  at main.py:3", "12:00:04 INFO no ERROR here"),
    *("12:00:05 [crit] x", "t=6 level=fatal", "12:00:07 TRACE t"),
]


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("colours", [False, True])
def test_lines_of_a_log_have_levels(raw: bool, colours: bool) -> None:
    rows = rows_of("\n".join(LOG), 1, 1, raw=raw, colours=colours)

    assert [row.level for row in rows] == [
        "info", "debug", "warn", "error", None, "info", None, "error", "debug",
    ]  # fmt: skip


def test_lines_of_other_texts_and_the_rest_of_a_line_have_no_level() -> None:
    prose = rows_of("An ERROR is raised.\n" + "It says what to do.\n" * 12, 1, 1)
    log = rows_of("\n".join(LOG[3:] + LOG), 1, 1, continued=True)

    assert {row.level for row in prose} == {None}
    assert [row.level for row in log][:2] == [None, None]
