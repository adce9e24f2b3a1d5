"""Colours and weights that escape sequences give to text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.inspector.web.descriptor_rows import rows_of, segments_of
from fdstore.inspector.web.text_style import PLAIN, READABLE, Style, changed, classes_of, contrast

PARTS = st.integers(0, 15)
COLOURS = st.tuples(PARTS, PARTS, PARTS)


def after(*sequences: str) -> Style:
    style = PLAIN
    for each in sequences:
        found = changed(style, f"\x1b[{each}m")
        assert found is not None, each
        style = found
    return style


def styled(text: str, **options: object) -> list[tuple[str, str]]:
    """The segments of all rows: their text, and their kind or style."""
    rows = rows_of(text, 1, 1, colours=True, **options)  # type: ignore[arg-type]
    return [(each.text, each.kind or each.style) for row in rows for each in row.segments]


@pytest.mark.parametrize(
    ("sequences", "classes"),
    [
        (["1;3;4"], "sgr bold italic underline"),
        (["1;2", "22"], ""),
        (["1;31", ""], ""),
        (["31"], "sgr fg r12 g0 b0"),
        (["91", "39"], ""),
        (["38;5;196"], "sgr fg r15 g0 b0"),
        (["38;5;9"], "sgr fg r15 g0 b0"),
        (["38;5;244"], "sgr fg r8 g8 b8"),
        (["38;2;255;136;0"], "sgr fg r15 g8 b0"),
        (["38:2::255:136:0"], "sgr fg r15 g8 b0"),
        (["38:2:255:136:0"], "sgr fg r15 g8 b0"),
        (["38:5:196"], "sgr fg r15 g0 b0"),
        (["4:3"], "sgr underline"),
        (["4", "4:0"], ""),
        (["37;44"], "sgr on r13 g13 b13 bg br0 bg0 bb14"),
        (["7"], "sgr inverse"),
        (["31;7"], "sgr white bg br12 bg0 bb0"),
        (["1;38;5;16;48;2;255;255;255;4"], "sgr bold underline on r0 g0 b0 bg br15 bg15 bb15"),
    ],
)
def test_a_sequence_sets_marks_and_colours(sequences: list[str], classes: str) -> None:
    assert classes_of(after(*sequences)) == classes


@pytest.mark.parametrize(
    "sequence",
    ["\x1b[2K", "\x1b[?25l", "\x1b[8m", "\x1b[5m", "\x1b[38m", "\x1b[38;5m", "\x1b[38;5;256m", "\x1b[38;9;1m",
     "\x1b[38;2;1;2m", "\x1b[38;2;1;2;999m", "\x1b[38:2m", "\x1b[1:2m", "\x1b[>4m", "\x1b[99999999999m",
     "\x1b]8;;http://x\x1b\\", "\x1b"],
)  # fmt: skip
def test_what_is_not_understood_is_shown_by_name(sequence: str) -> None:
    assert changed(PLAIN, sequence) is None
    assert styled(f"a{sequence}b") == [(each.text, each.kind) for each in segments_of(f"a{sequence}b")]


def test_a_style_holds_over_lines_until_it_is_reset() -> None:
    assert styled("a \x1b[1mb\nc\n\x1b[0md\n") == [
        ("a ", ""),
        ("b", "sgr bold"),
        ("c", "sgr bold"),
        ("d", ""),
    ]


def test_what_is_marked_shows_its_escapes_and_the_text_after_it_keeps_its_colour() -> None:
    text = "a\x1b[1mbcd\n"

    assert styled(text, chars=(6, 7)) == [("a", ""), ("bc", "mark"), ("d", "sgr bold")]
    assert styled(text, chars=(3, 6)) == [
        ("a", ""), ("ESC", "ansi"), ("[1m", "ansi mark"), ("b", "mark"), ("cd", "sgr bold"),
    ]  # fmt: skip


def test_without_colours_and_raw_nothing_has_a_style() -> None:
    assert [each.style for each in rows_of("\x1b[1mx", 1, 1)[0].segments] == ["", ""]
    assert [each.text for each in rows_of("\x1b[1mx", 1, 1, raw=True, colours=True)[0].segments] == [
        "\x1b[1mx"
    ]


@pytest.mark.parametrize(
    "text", ["\x1b[" + "1;" * 5000 + "m", "\x1b[31", "\x1b[" * 3000, "\x1b[3\x1b[31m1mx", "\x1b[38;5;" * 99]
)
def test_hostile_sequences_are_text(text: str) -> None:
    assert "\x1b" not in "".join(shown for shown, _ in styled(text))


@given(
    st.lists(
        st.sampled_from(["\x1b[", "\x1b", ";", ":", "m", "0", "1", "38", "2", "5", "48", "7", "x", "\n"])
    )
)
def test_any_sequences_leave_the_text_and_known_classes(pieces: list[str]) -> None:
    text = "".join(pieces)

    found = styled(text)

    assert "".join(shown for shown, _ in found).count("x") == text.count("x")
    assert all(word.isalnum() for _, classes in found for word in classes.split())


@given(COLOURS, COLOURS)
def test_text_before_a_background_can_be_read(text: tuple[int, int, int], back: tuple[int, int, int]) -> None:
    names = classes_of(Style(text=text, back=back)).split()

    shown = {"on": text, "black": (0, 0, 0), "white": (15, 15, 15)}[names[1]]
    assert contrast(shown, back) >= READABLE
