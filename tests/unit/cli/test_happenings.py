"""The lines of `run`, `attach` and `demo`: whole elsewhere, on a terminal below themselves and coloured."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.cli.happenings import Happening
from fdstore.cli.log_lines import entry_lines
from fdstore.cli.tables import width
from fdstore.inspector.reading.entries import ConversationEntry

COLOURS = re.compile("\x1b\\[[0-9;]*m")
LONG = " ".join(f"word{number}" for number in range(60))


def test_elsewhere_an_event_is_one_line() -> None:
    event = Happening(0.224, "triage", f"  gets\n{LONG}")

    assert list(event.lines()) == [str(event)]
    assert str(event) == f"  0.22s  triage               gets\\u{{a}}{LONG}"


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_long_line_goes_on_below_its_text(columns: int) -> None:
    first, *rest = Happening(3727.0, "triage", f"  says {LONG}").lines(columns=columns)

    assert all(width(line) <= columns for line in (first, *rest))
    assert first.index("says") == 30
    assert all(line.startswith(" " * 32) and line[32] != " " for line in rest)
    assert " ".join(" ".join([first, *rest]).split()) == f"1:02:07 triage says {LONG}"


def test_the_text_of_a_deep_process_has_lines_of_its_own() -> None:
    process = "n" * 48 + ".1" * 6

    first, *rest = Happening(0.5, process, f"says {LONG}").lines(columns=80)

    assert first == f"  0.50s  {process}"
    assert all(line.startswith(" " * 12) for line in rest)


@given(st.text(max_size=90), st.text(max_size=300), st.integers(50, 200))
def test_no_event_is_wider_than_the_terminal(process: str, what: str, columns: int) -> None:
    lines = list(Happening(1.0, process, what, "bad").lines(columns=columns, coloured=True))

    assert all(width(COLOURS.sub("", line)) <= columns for line in lines)
    assert "\x1b" not in COLOURS.sub("", "".join(lines))


def test_only_what_matters_is_painted() -> None:
    failed, called = (
        list(Happening(1.0, "a", "failed", tone).lines(columns=80, coloured=True)) for tone in ("bad", "mark")
    )

    assert failed[0].endswith("\x1b[31mfailed\x1b[m")
    assert called[0].endswith(" \x1b[mfailed")


@given(st.text(alphabet="ab 漢😀", max_size=300), st.integers(60, 120))
def test_no_line_of_a_log_is_wider_than_the_terminal(text: str, columns: int) -> None:
    entry = ConversationEntry(position=1, kind="answer", at=0.0, text=text, chars=len(text))

    assert all(width(line) <= columns for line in entry_lines(entry, columns=columns))
