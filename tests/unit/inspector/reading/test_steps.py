"""The steps of a conversation: results are below their calls, and equal calls are together."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.reading.steps import MIN_FOLDED, Fold, Step, fold, make_steps


def entry(position: int, kind: Any, call: str = "", part: int = 0, **more: Any) -> ConversationEntry:
    return ConversationEntry(position=position, part=part, kind=kind, call=call, **more)


def spawns(count: int, program: str = "summarizer", first: int = 0) -> list[ConversationEntry]:
    return [
        entry(3, "call", f"c{n}", n, tool="spawn_agent", at=10.0, arguments={"program_name": program})
        for n in range(first, first + count)
    ]


def result(position: int, call: str, **more: Any) -> ConversationEntry:
    return entry(position, "result", call, tool="spawn_agent", **more)


def keys(steps: tuple[Step, ...]) -> list[list[str]]:
    return [[f"{each.position}-{each.part}" for each in step.entries] for step in steps]


def test_results_are_below_their_calls_in_whatever_order_they_came() -> None:
    found = make_steps(
        [
            entry(3, "answer"),
            entry(3, "call", "a", 1),
            entry(3, "call", "b", 2),
            entry(4, "attempt"),
            result(5, "b"),
            result(6, "a"),
            entry(7, "answer"),
        ]
    )

    assert keys(found) == [["3-0"], ["3-1", "6-0"], ["3-2", "5-0"], ["4-0"], ["7-0"]]


def test_the_questions_of_a_program_are_counted_with_its_call() -> None:
    found = make_steps([entry(3, "call", "a"), entry(3, "asks", "a", 10_000), result(4, "a")])

    assert keys(found) == [["3-0", "3-10000", "4-0"]]


def test_a_result_whose_call_is_elsewhere_stands_alone() -> None:
    found = make_steps([result(60, "a"), entry(61, "call", "b"), result(62, "c")])

    assert keys(found) == [["60-0"], ["61-0"], ["62-0"]]
    assert [each.state for each in found] == ["done", "unanswered", "done"]


def test_results_of_calls_that_are_elsewhere_are_known_and_folded_by_them() -> None:
    earlier = {each.call: each for each in spawns(5)}

    [folded, alone] = fold(
        make_steps([*(result(60 + n, f"c{n}") for n in range(5)), result(70, "x")], earlier)
    )

    assert isinstance(folded, Fold)
    assert [each.call for each in folded.steps] == list(earlier.values())
    assert {each.subject for each in folded.steps} == {"summarizer"}
    assert isinstance(alone, Step)
    assert alone.call is None


def test_calls_that_reuse_a_key_have_each_its_own_result() -> None:
    found = make_steps(
        [entry(1, "call", "a"), result(2, "a"), result(3, "a"), entry(4, "call", "a"), result(5, "a")]
    )

    assert keys(found) == [["1-0", "2-0"], ["3-0"], ["4-0", "5-0"]]


def test_equal_calls_of_one_answer_are_folded_with_the_sum_of_their_states() -> None:
    results = [
        result(4 + n, f"c{n}", at=11.0 + n, duration_s=1.0 + n, is_error=n in (7, 30)) for n in range(39)
    ]
    pending = entry(3, "call", "c39", 39, tool="spawn_agent", at=10.0, pending=True, arguments={})

    [answer, folded, last] = fold(make_steps([entry(3, "answer"), *spawns(39), pending, *results]))

    assert isinstance(answer, Step)
    assert isinstance(folded, Fold)
    assert folded.states == {"failed": 2, "done": 37}
    assert [each.key for each in folded.failed] == ["3-7", "3-30"]
    assert len(folded.failed) + len(folded.others) == len(folded.steps) == 39
    assert folded.took_s(now_s=99.0) == 39.0
    assert isinstance(last, Step), "another subject"
    assert last.state == "running"


def test_few_calls_and_calls_of_other_programs_are_not_folded() -> None:
    few = make_steps(spawns(MIN_FOLDED - 1) + spawns(MIN_FOLDED - 1, "reader", first=MIN_FOLDED))

    assert fold(few) == few


def test_a_call_without_a_result_was_cut_off_if_its_process_failed() -> None:
    call = entry(3, "call", "a")

    [cut_off, end] = make_steps([call, entry(4, "end", state="failed")])
    [unanswered, _] = make_steps([call, entry(4, "end", state="exited")])

    assert (cut_off.state, end.state, unanswered.state) == ("failed", "failed", "unanswered")


def test_errors_are_failed_calls_tries_and_ends_lost_workers_and_damage() -> None:
    failed = [
        result(1, "a", is_error=True),
        entry(2, "ask", is_error=True),
        entry(3, "retry"),
        entry(4, "loss"),
        entry(5, "unreadable"),
        entry(6, "end", state="failed"),
    ]
    fine = [result(1, "a"), entry(2, "ask"), entry(3, "attempt", before="loss"), entry(4, "outage")]

    assert all(each.is_error for each in make_steps(failed))
    assert not any(each.is_error for each in make_steps(fine))


def test_a_call_begins_when_its_tool_does_and_goes_on_until_now() -> None:
    [done] = make_steps([entry(3, "call", "a", at=10.0), result(4, "a", at=15.0, duration_s=2.0)])
    [running] = make_steps([entry(3, "call", "a", at=10.0, pending=True)])
    [untimed] = make_steps([entry(3, "call", "a")])

    assert (done.began_at, done.ended_at(99.0), done.took_s) == (13.0, 15.0, 2.0)
    assert (running.began_at, running.ended_at(99.0), running.took_s) == (10.0, 99.0, None)
    assert (untimed.began_at, untimed.ended_at(99.0)) == (None, None)


KINDS = st.sampled_from(["call", "result", "asks", "answer", "note", "attempt", "retry", "end", "unreadable"])


@st.composite
def conversations(draw: st.DrawFn) -> list[ConversationEntry]:
    return [
        entry(
            n // draw(st.integers(1, 5)),
            draw(KINDS),
            draw(st.sampled_from(["", "a", "b", "c"])),
            n,
            tool=draw(st.sampled_from(["put_fd", "spawn_agent"])),
            at=draw(st.none() | st.floats(0, 1e9)),
            duration_s=draw(st.none() | st.floats(0, 1e6)),
            is_error=draw(st.booleans()),
            pending=draw(st.booleans()),
            state=draw(st.sampled_from(["", "exited", "failed", "cancelled"])),
            arguments=draw(st.none() | st.just({"program_name": "x"}) | st.just({"program_name": [1]})),
        )
        for n in range(draw(st.integers(0, 40)))
    ]


@given(conversations())
def test_no_entry_is_lost_and_those_that_do_not_move_keep_their_order(
    entries: list[ConversationEntry],
) -> None:
    steps = make_steps(entries)
    shown = [each for step in fold(steps) for one in getattr(step, "steps", (step,)) for each in one.entries]
    first = [step.entry for step in steps]

    assert sorted(each.part for each in shown) == [each.part for each in entries]
    assert [each.part for each in first] == sorted(each.part for each in first)
    moved = {step.result.part: step.entry for step in steps if step.result is not None}
    assert {each.part for each in entries} == {each.part for each in first} | moved.keys() | {
        step.asks.part for step in steps if step.asks is not None
    }
    assert all(call.kind == "call" and call.part < part for part, call in moved.items())
    assert all(call.call == entries[part].call for part, call in moved.items())


@given(conversations())
def test_a_fold_has_its_failed_steps_and_the_others(entries: list[ConversationEntry]) -> None:
    for each in fold(make_steps(entries)):
        if isinstance(each, Fold):
            assert sorted(step.key for step in (*each.failed, *each.others)) == sorted(
                step.key for step in each.steps
            )
            assert sum(each.states.values()) == len(each.steps) >= MIN_FOLDED
            assert (each.took_s(0.0) or 0.0) >= 0.0
