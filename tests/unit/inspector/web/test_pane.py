"""The pane of a process page: which step it shows, and where one can go from it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.elements import render
from fdstore.errors import InvalidArgument, NotFound
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.reading.steps import Step, fold, make_steps
from fdstore.inspector.web.pane import (
    MAX_HINT_CHARS,
    Moves,
    axis_of_steps,
    box_of,
    choose,
    hint_of,
    in_rows,
    moves_from,
    position_in,
    title_of,
)


def entry(position: int, kind: Any, **more: Any) -> ConversationEntry:
    return ConversationEntry(position=position, kind=kind, **more)


STEPS = make_steps(
    [
        entry(1, "prompt", text="Why?"),
        entry(2, "call", call="a", tool="read_fd", arguments={"fd": "fd:1"}),
        entry(3, "result", call="a", at=10.0, duration_s=1.0),
        entry(4, "result", call="b", is_error=True, at=14.0, duration_s=2.0),
        entry(5, "retry"),
        entry(6, "answer", number=2),
    ]
)


def test_the_first_error_of_a_failed_process_is_shown_and_else_the_last_step() -> None:
    assert choose(STEPS, "", errors_first=True) == STEPS[2]
    assert choose(STEPS, "", errors_first=False) == STEPS[-1]
    assert choose(STEPS[:2], "", errors_first=True) == STEPS[1]
    assert choose((), "", errors_first=True) is None


def test_of_a_process_that_ended_well_its_last_answer_is_shown() -> None:
    end = make_steps([entry(7, "end", state="exited")])

    assert choose((*STEPS, *end), "", errors_first=False) == STEPS[-1]
    assert choose(end, "", errors_first=False) == end[0]


def test_a_step_is_named_by_each_of_its_entries() -> None:
    assert choose(STEPS, "2-0", errors_first=True) == choose(STEPS, "3-0", errors_first=True) == STEPS[1]
    assert choose(STEPS, "002-0", errors_first=True) == STEPS[1]
    assert choose(STEPS, "3-1", errors_first=True) is None


@pytest.mark.parametrize(
    "at", ["x", "3", "3-", "-1-0", "3-0-0", "3-0\n", "\u0663-0", "9" * 20 + "-0", "3- 0"]
)
def test_what_is_no_step_is_refused(at: str) -> None:
    with pytest.raises(InvalidArgument, match="is not a step"):
        position_in(at)


def test_one_goes_to_neighbours_and_to_errors() -> None:
    assert moves_from(STEPS, "4-0") == Moves(previous="2-0", next="5-0", next_error="5-0")
    assert moves_from(STEPS, "6-0") == Moves(previous="5-0", previous_error="5-0")
    assert moves_from(STEPS, "gone") == Moves(next="1-0", next_error="4-0")
    assert moves_from((), "") == Moves()


def test_a_fold_has_rows_in_the_order_in_which_it_is_shown() -> None:
    calls = [entry(3, "call", part=n, call=f"c{n}", tool="spawn_agent") for n in range(5)]
    steps = make_steps([*calls, entry(4, "result", call="c3", is_error=True), entry(5, "answer")])

    rows = in_rows(fold(steps))

    assert [each.key for each in rows] == ["3-3", "3-0", "3-1", "3-2", "3-4", "5-0"]


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_the_moves_lead_through_all_rows_and_all_errors(failed: list[bool]) -> None:
    rows = [Step(entry=entry(n, "result", is_error=is_error)) for n, is_error in enumerate(failed)]

    at, visited = rows[0].key, [rows[0].key]
    while at := moves_from(rows, at).next:
        visited.append(at)
    at, errors = rows[-1].key, []
    while at := moves_from(rows, at).previous_error:
        errors.append(at)

    assert visited == [each.key for each in rows]
    assert errors == [each.key for each in reversed(rows[:-1]) if each.is_error]


def test_rows_are_called_by_their_tool_and_its_program() -> None:
    spawn = entry(1, "call", tool="spawn_agent", arguments={"program_name": "expert", "query": "Which?\nAll"})
    [spawned, end] = make_steps([spawn, entry(2, "end", state="exited", text="done")])

    assert (title_of(spawned), hint_of(spawned)) == ("spawn_agent expert", "Which? All")
    assert (title_of(end), hint_of(end)) == ("End: exited", "done")
    assert (title_of(STEPS[0]), hint_of(STEPS[0])) == ("Prompt", "Why?")
    assert title_of(make_steps([entry(1, "result", call="b")])[0]) == "Result"


def test_the_hint_of_a_result_alone_is_in_words() -> None:
    missing = render.fd_error(NotFound("fd:9", ()), "fd:9")
    [step] = make_steps([entry(1, "result", text=missing.text, facts=missing.facts, is_error=True)])

    assert hint_of(step) == f"not_found, fd:9 {missing.facts.error.message}"


@pytest.mark.parametrize(
    "arguments",
    [None, [], {}, {"a": None}, {"a": [1, "x"]}, {"a": "\x1b[2J" * 900}, {"program_name": 7}, "x"],
)
def test_a_hint_is_short_whatever_the_arguments(arguments: Any) -> None:
    [step] = make_steps([entry(1, "call", tool="t", arguments=arguments)])

    assert len(hint_of(step)) <= MAX_HINT_CHARS
    assert "\x1b" not in hint_of(step)


def test_the_axis_goes_from_the_first_begin_to_the_last_end() -> None:
    axis = axis_of_steps(STEPS, now_s=99.0)

    assert (axis.at, axis.length_s) == (9.0, 5.0)
    box = box_of(STEPS[2], axis, now_s=99.0)
    assert (box.x, box.width) == ("60.00%", "40.00%")
    assert box_of(STEPS[0], axis, now_s=99.0) is None
    assert axis_of_steps(STEPS[:1], now_s=99.0) is None
