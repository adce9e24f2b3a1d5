"""`describe_error`: exceptions of any kind as a text, with what they hold."""

from __future__ import annotations

import traceback

import pytest

from fdstore.client.write_buffer import reason_of
from fdstore.errors.description import MAX_CAUSES, describe_error, logged


def test_the_notes_of_an_exception_follow_its_text() -> None:
    error = ValueError("no such day")
    error.add_note("days are counted from 1")
    error.add_note("see the calendar")

    assert describe_error(error) == "ValueError: no such day\ndays are counted from 1\nsee the calendar"


def test_notes_that_are_no_texts_are_left_out() -> None:
    error = ValueError("no such day")
    error.__notes__ = [3, "a note"]
    broken = ValueError("no such day")
    broken.__notes__ = 3  # type: ignore[assignment]

    assert describe_error(error) == "ValueError: no such day\na note"
    assert describe_error(broken) == "ValueError: no such day"


class Unreadable(ValueError):
    @property
    def __notes__(self) -> list[str]:
        raise RuntimeError("no notes")

    @property  # Python 3.13 formats an exception whose notes cannot be read
    def __suppress_context__(self) -> bool:
        raise RuntimeError("no context")


def test_an_exception_that_cannot_be_formatted_is_logged_by_its_description() -> None:
    try:
        raise Unreadable("no such day")
    except Unreadable as caught:
        error = caught  # what fails from here on has no context that cannot be read
    told = "".join(traceback.format_exception(*logged(error)))

    assert told.startswith("Traceback")
    assert "test_an_exception_that_cannot" in told
    assert told.endswith("RuntimeError: Unreadable: no such day\n")
    plain = ValueError("no such day")
    assert logged(plain)[:2] == (ValueError, plain)


def test_of_a_large_group_some_causes_are_told_and_the_others_counted() -> None:
    inner = ExceptionGroup("inner", [KeyError(number) for number in range(500)])

    told = describe_error(ExceptionGroup("outer", [inner, ValueError("the last")])).splitlines()

    assert len(told) == 1 + MAX_CAUSES + 2
    assert told[-2:] == ["    ... and 481 more", "  ... and 1 more"]


def test_groups_in_groups_end() -> None:
    group = ExceptionGroup("the innermost", [ValueError("the cause")])
    for _ in range(5000):
        group = ExceptionGroup("outer", [group])

    assert len(describe_error(group)) < 1000


@pytest.mark.parametrize("kind", [ExceptionGroup, BaseExceptionGroup])
def test_a_stream_that_a_group_ends_names_a_cause(kind: type[BaseExceptionGroup[Exception]]) -> None:
    assert "ValueError: no page 1" in reason_of(kind("2 pages", [ValueError("no page 1")]))
