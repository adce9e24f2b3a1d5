"""The checkers of histories under network faults: right histories pass, each kind of wrong one is found."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fdstore.errors import Conflict, StoreUnavailable, UnknownOutcome
from tests.chaos.network import checks
from tests.chaos.network.checks import Attempt, Sighting, Tally
from tests.chaos.network.operations import History, Operation, Outcome, read_history
from tests.chaos.network.schedule import KINDS, plan_faults
from tests.properties import examples

ENDED = frozenset({"exited"})
TWICE = [
    Attempt("a", "acknowledged"),
    Attempt("b", "unknown"),
    Attempt("c", "refused"),
    Attempt("d", "acknowledged"),
]


def put(value: str, expected: str, at_s: float, outcome: Outcome = "acknowledged") -> Operation:
    return Operation(
        kind="put",
        subject="k",
        value=value,
        expected=expected,
        outcome=outcome,
        began_s=at_s,
        ended_s=at_s + 1,
    )


def read(value: str, at_s: float) -> Operation:
    return Operation(kind="read", subject="k", value=value, began_s=at_s, ended_s=at_s + 1)


def problem_of(tally: Tally) -> str:
    [problem] = tally.problems
    return problem


# --- names


def test_a_chain_of_puts_with_refused_and_unknown_ones_is_right() -> None:
    history = [
        read("", 0),
        put("a", "", 0),
        put("b", "a", 2, "unknown"),
        put("x", "a", 3, "refused"),
        put("c", "b", 4),
        put("y", "c", 6, "unknown"),
        read("c", 6),
    ]

    tally = checks.check_name(history, "c")

    assert tally.problems == []
    assert tally.outcomes == {"acknowledged": 4, "unknown": 2, "refused": 1}


@pytest.mark.parametrize(
    ("history", "meant", "problem", "lost"),
    [
        (
            [put("a", "", 0), put("b", "a", 2), put("c", "a", 2)],
            "c",
            "'b' was acknowledged and is not there",
            1,
        ),
        ([put("a", "", 0), put("b", "a", 2)], "a", "'b' was acknowledged and is not there", 1),
        ([put("a", "", 0), put("b", "a", 2, "refused")], "b", "'b' was refused and was put", 0),
        ([put("a", "", 10), put("b", "a", 2)], "b", "'a' began after a later value was acknowledged", 0),
        ([put("a", "", 0)], "z", "no put wrote it", 0),
        ([put("a", "b", 0), put("b", "a", 2)], "b", "form a circle", 0),
    ],
    ids=["overwritten unseen", "gone", "refused", "order", "of nobody", "circle"],
)
def test_a_put_that_is_lost_done_though_refused_or_out_of_order_is_found(history, meant, problem, lost):
    tally = checks.check_name(history, meant)

    assert problem in problem_of(tally)
    assert tally.lost == lost


def test_a_name_that_is_gone_has_lost_every_put() -> None:
    assert checks.check_name([put("a", "", 0), put("b", "a", 2)], "").lost == 2


@pytest.mark.parametrize(
    ("seen", "at_s", "problem"),
    [
        ("a", 4, "after a later value was acknowledged"),
        ("", 2, "after a later value was acknowledged"),
        ("b", 0, "before it was put"),
        ("x", 4, "which the name never meant"),
    ],
)
def test_a_read_of_a_value_that_the_name_did_not_mean_then_is_found(
    seen: str, at_s: float, problem: str
) -> None:
    history = [put("a", "", 0), put("b", "a", 2), put("x", "a", 2, "refused"), read(seen, at_s)]

    assert problem in problem_of(checks.check_name(history, "b"))


def test_a_read_during_a_put_may_see_either_value() -> None:
    history = [put("a", "", 0), put("b", "a", 2), read("a", 2.5), read("b", 2.5)]

    assert checks.check_name(history, "b").problems == []


@settings(max_examples=examples(100))
@given(st.integers(0, 2**32), st.integers(1, 20))
def test_every_history_of_a_right_name_passes_and_losing_any_acknowledged_put_fails(
    seed: int, count: int
) -> None:
    rng = random.Random(seed)
    history, meant = [], ""
    for number in range(count):
        expected = rng.choice([meant, "an old value"])
        outcome: Outcome = rng.choice(("acknowledged", "unknown")) if expected == meant else "refused"
        history.append(put(f"v{number}", expected, number * 2.0, outcome))
        if outcome == "acknowledged" or (outcome == "unknown" and rng.random() < 0.5):
            meant = f"v{number}"
    rng.shuffle(history)

    assert checks.check_name(history, meant).problems == []
    made = [operation for operation in history if operation.outcome == "acknowledged"]
    if made:
        assert checks.check_name(history, rng.choice(made).expected).lost


# --- what happens once


@pytest.mark.parametrize("found", [["a", "d"], ["a", "b", "d"]])
def test_acknowledged_attempts_once_and_unknown_ones_at_most_once_are_right(found: list[str]) -> None:
    assert checks.check_once("parts", TWICE, found).problems == []


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (["a"], "'d' was acknowledged and is not there"),
        (["a", "d", "a"], "'a' is there 2 times"),
        (["a", "b", "b", "d"], "'b' is there 2 times"),
        (["a", "c", "d"], "'c' was refused and is there"),
        (["a", "d", "e"], "'e' is there, and no holder wrote it"),
        (["d", "a"], "what is there is in another order than it was written"),
    ],
)
def test_what_is_lost_doubled_refused_foreign_or_out_of_order_is_found(
    found: list[str], problem: str
) -> None:
    assert problem_of(checks.check_once("parts", TWICE, found)) == f"parts: {problem}"


def test_the_order_may_be_free() -> None:
    assert checks.check_once("parts", TWICE, ["d", "a"], ordered=False).problems == []


def test_what_is_lost_and_what_is_doubled_are_counted() -> None:
    tally = checks.check_once("parts", TWICE, ["a", "a", "a"])

    assert (tally.lost, tally.doubled) == (1, 2)


# --- streams


@pytest.mark.parametrize(
    ("text", "reached_end", "problem"),
    [
        ("one", False, None),
        ("one two", True, None),
        ("", False, None),
        ("one", True, "saw the end after 3 of 7 characters"),
        ("one three", False, "that the content does not begin with"),
        ("one two three", True, "that the content does not begin with"),
    ],
)
def test_a_reader_sees_a_prefix_and_at_the_end_all(text: str, reached_end: bool, problem: str | None) -> None:
    tally = checks.check_readers("one two", {"a reader": (text, reached_end)})

    assert (problem in problem_of(tally)) if problem else not tally.problems


# --- claims


def test_attempts_of_several_workers_in_turn_are_right() -> None:
    seen = [
        Sighting("p", 0, None, "ready"),
        Sighting("p", 1, "w1", "running"),
        Sighting("p", 1, None, "ready"),
        Sighting("p", 2, "w2", "running"),
        Sighting("p", 2, "w2", "exited"),
    ]

    assert checks.check_claims(seen, ENDED).problems == []


@pytest.mark.parametrize(
    ("then", "problem"),
    [
        (Sighting("p", 2, "w2", "running"), "w1 and w2 both held attempt 2 of p"),
        (Sighting("p", 1, "w1", "running"), "p went back from attempt 2 to 1"),
    ],
)
def test_two_holders_of_one_attempt_and_an_attempt_that_comes_back_are_found(
    then: Sighting, problem: str
) -> None:
    assert (
        problem_of(checks.check_claims([Sighting("p", 2, "w1", "running"), then], ENDED))
        == f"claims: {problem}"
    )


def test_a_process_that_runs_after_its_end_is_found() -> None:
    seen = [Sighting("p", 1, "w1", "exited"), Sighting("p", 2, "w2", "running")]

    assert problem_of(checks.check_claims(seen, ENDED)) == "claims: p was exited and then running"


# --- exports and errors


def export(found: str, outcome: Outcome) -> Operation:
    return Operation(kind="export", subject="1.txt", value="whole", expected=found, outcome=outcome)


@pytest.mark.parametrize(
    ("found", "outcome"), [("whole", "acknowledged"), ("whole", "unknown"), ("", "refused")]
)
def test_a_file_that_is_whole_or_absent_is_right(found: str, outcome: Outcome) -> None:
    assert checks.check_exports([export(found, outcome)]).problems == []


@pytest.mark.parametrize(
    ("found", "outcome", "problem"),
    [
        ("a part", "refused", "1.txt is neither whole nor absent (refused)"),
        ("a part", "acknowledged", "1.txt is neither whole nor absent (acknowledged)"),
        ("", "acknowledged", "1.txt was acknowledged and is not there"),
    ],
)
def test_a_part_of_a_file_and_a_missing_file_are_found(found: str, outcome: Outcome, problem: str) -> None:
    assert problem_of(checks.check_exports([export(found, outcome)])) == f"exports: {problem}"


def test_an_error_of_no_documented_type_is_found() -> None:
    history = [
        Operation(kind="put", subject="k", error="conflict", outcome="refused"),
        Operation(kind="put", subject="k", error="not an FDStoreError: OSError()", outcome="unknown"),
    ]

    tally = checks.check_errors(history, {"conflict"})

    assert problem_of(tally) == "errors: put of k raised not an FDStoreError: OSError()"


# --- what is recorded


@pytest.mark.parametrize(
    ("error", "outcome", "kind"),
    [
        (UnknownOutcome("'put'"), "unknown", "unknown_outcome"),
        (StoreUnavailable("redis://there", "timeout"), "refused", "store_unavailable"),
        (Conflict("name:k", "name:k"), "refused", "conflict"),
        (OSError("away"), "unknown", "not an FDStoreError: OSError('away')"),
    ],
)
def test_a_call_is_recorded_with_how_it_ended(
    error: Exception, outcome: Outcome, kind: str, tmp_path: Path
) -> None:
    history = History(tmp_path / "a.history")
    with history.record(Operation(kind="put", subject="k", value="v")):
        raise error
    with history.record(Operation(kind="put", subject="k", value="w")):
        pass
    history.close()

    failed, done = read_history(tmp_path.glob("*.history"))

    assert (failed.value, failed.outcome, failed.error) == ("v", outcome, kind)
    assert (done.value, done.outcome, done.error) == ("w", "acknowledged", "")
    assert failed.began_s <= failed.ended_s <= done.began_s


def test_a_table_has_a_line_for_each_kind() -> None:
    lines = checks.table(
        [checks.check_once("parts", TWICE, ["a", "a"]), checks.check_exports([])]
    ).splitlines()

    assert [line.split() for line in lines] == [
        ["operations", "acknowledged", "unknown", "refused", "lost", "doubled"],
        ["parts", "4", "2", "1", "1", "1", "1"],
        ["exports", "0", "0", "0", "0", "0", "0"],
    ]


@settings(max_examples=examples(100))
@given(st.integers(0, 2**32))
def test_a_seed_gives_one_schedule_in_which_faults_of_a_machine_do_not_overlap(seed: int) -> None:
    planned = plan_faults(random.Random(seed), ["a", "b"], 60, 2.0)

    assert planned == plan_faults(random.Random(seed), ["a", "b"], 60, 2.0)
    assert {fault.kind for fault in planned} == set(KINDS)
    for machine in ("a", "b"):
        its = [fault for fault in planned if fault.machine == machine]
        assert all(fault.ends_s <= after.begins_s for fault, after in pairwise(its))
        assert all(fault.begins_s < fault.ends_s <= 60 for fault in its)
