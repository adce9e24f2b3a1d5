"""The rule by which a store and its workers are healthy."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.store.doctor.safety import Finding
from fdstore.store.views.health_rule import (
    MANY_FAILURES,
    MANY_LOSSES,
    MAX_NAMED,
    VANISHED_S,
    HealthFacts,
    WorkerSigns,
    judge,
    level_of,
    summary,
)

NOW = 1_000_000.0


def worker(name: str = "host:1", **signs: Any) -> WorkerSigns:
    """A worker that was seen just now, or so long ago as `ago_s` says."""
    ago_s = signs.pop("ago_s", 0.0)
    return WorkerSigns(
        name=name, seen_at=NOW - ago_s, alive_until=NOW - ago_s + (0 if ago_s else 10), **signs
    )


def facts(*workers: WorkerSigns, **more: Any) -> HealthFacts:
    given = {"sweeper": "host:1", "sweep_lag_s": 2.0, **more}
    return HealthFacts(now_s=NOW, workers=workers, **given)


def about(subject: str, found: HealthFacts) -> Finding:
    [finding] = [each for each in judge(found) if each.subject == subject]
    return finding


signs = st.builds(
    WorkerSigns,
    name=st.sampled_from(["a:1", "b:2", "c:3"]),
    seen_at=st.floats(0, NOW),
    alive_until=st.floats(0, NOW + 60),
    slots=st.none() | st.integers(0, 20),
    busy=st.none() | st.integers(0, 20),
    lost=st.none() | st.integers(0, 20),
    holds=st.integers(0, 20),
)
all_facts = st.builds(
    HealthFacts,
    now_s=st.just(NOW),
    workers=st.lists(signs, max_size=6).map(tuple),
    sweeper=st.none() | st.just("a:1"),
    sweep_lag_s=st.none() | st.floats(0, 1e6),
    waiting=st.integers(0, 5000),
    oldest_wait_s=st.floats(0, 1e6),
    failures=st.none() | st.integers(0, 10_000),
    losses=st.none() | st.integers(0, 10_000),
    used_memory_bytes=st.integers(0, 1 << 50),
    max_memory_bytes=st.integers(0, 1 << 50),
)


@given(all_facts)
def test_every_problem_says_what_to_do_and_problems_come_first(found: HealthFacts) -> None:
    findings = judge(found)

    ranks = [(each.ok, not each.note) for each in findings]
    assert ranks == sorted(ranks)
    assert all(each.said for each in findings)
    assert all(each.advice for each in findings if not each.ok)
    assert not any(each.note for each in findings if not each.ok)
    assert len(findings) <= 7 + len(found.workers)


@given(all_facts)
def test_while_processes_wait_and_no_worker_lives_there_is_a_problem(found: HealthFacts) -> None:
    if found.waiting and not found.alive:
        assert level_of(judge(found)) == "problem"


@given(all_facts)
def test_a_worker_whose_slots_are_all_lost_is_a_problem(found: HealthFacts) -> None:
    stuck = [each for each in found.alive if each.slots is not None and 0 < each.slots <= (each.lost or 0)]

    named = [each.said for each in judge(found) if each.subject == "lost calls" and not each.ok]
    assert all(any(said.startswith(f"{each.name}: ") for said in named) for each in stuck)


@given(all_facts)
def test_the_summary_is_one_line_that_names_each_problem(found: HealthFacts) -> None:
    findings = judge(found)

    line = summary(findings)
    assert "\n" not in line
    assert all(each.said in line for each in findings if not each.ok)


def test_a_store_with_idle_workers_is_healthy_and_its_figures_are_shown() -> None:
    found = facts(
        worker(slots=8, busy=2, lost=0), worker("host:2", slots=8, busy=1, lost=0), failures=0, losses=0
    )

    findings = judge(found)

    assert level_of(findings) == "ok"
    assert summary(findings).startswith(
        "well: workers: 2 are alive, 3 of 16 slots busy; queue: no process waits"
    )


def test_without_workers_an_idle_store_is_a_note() -> None:
    found = about("workers", facts())

    assert (found.ok, found.note, found.said) == (True, True, "none is alive")


@pytest.mark.parametrize(("lost", "level"), [(0, "ok"), (1, "note"), (2, "note"), (3, "problem")])
def test_lost_calls_are_a_problem_once_they_hold_every_slot(lost: int, level: str) -> None:
    assert level_of(judge(facts(worker(slots=3, busy=3, lost=lost)))) == level


def test_a_lost_call_is_told_with_the_slots_that_it_holds() -> None:
    some = about("lost calls", facts(worker(slots=8, busy=3, lost=1)))
    every = about("lost calls", facts(worker(slots=2, busy=2, lost=2)))

    assert some.said == "host:1: 1 of 8 slots is held by a call that it lost and that does not end"
    assert every.said == (
        "host:1: 2 of 2 slots are held by calls that it lost and that do not end, so it claims nothing"
    )


@pytest.mark.parametrize(("ago_s", "level"), [(5.0, "problem"), (VANISHED_S + 1, "note")])
def test_a_worker_that_vanished_is_a_problem_for_an_hour_and_a_note_for_a_day(
    ago_s: float, level: str
) -> None:
    found = facts(worker(), worker("host:2", ago_s=ago_s, holds=3))

    assert level_of(judge(found)) == level
    assert "host:2 not seen since 1970-01-12T" in about("vanished workers", found).said
    assert "when it held 3 processes" in about("vanished workers", found).said


def test_of_many_workers_that_vanished_the_last_are_named() -> None:
    gone = [worker(f"host:{number}", ago_s=100.0 - number) for number in range(10)]

    said = about("vanished workers", facts(worker("alive:1"), *gone)).said

    assert said.count("not seen since") == MAX_NAMED
    assert said.startswith("host:9 ")
    assert said.endswith("and 7 more")


@pytest.mark.parametrize(
    ("busy", "wait_s", "level"),
    [(1, 30, "ok"), (1, 90, "problem"), (2, 30, "note"), (2, 90, "note"), (2, 900, "problem")],
)
def test_a_process_may_wait_a_minute_and_ten_while_all_slots_are_busy(
    busy: int, wait_s: float, level: str
) -> None:
    found = facts(worker(slots=2, busy=busy, lost=0), waiting=1, oldest_wait_s=wait_s)

    assert level_of(judge(found)) == level
    assert about("queue", found).said.startswith("1 process waits for a worker, the oldest for ")


@pytest.mark.parametrize(
    ("sweeper", "lag_s", "level"),
    [
        *(("host:1", 2.0, "ok"), ("host:1", None, "ok"), (None, 2.0, "ok"), (None, None, "note")),
        *(("host:1", 61.0, "problem"), (None, 61.0, "problem")),
    ],
)
def test_a_sweep_that_is_late_is_a_problem(sweeper: str | None, lag_s: float | None, level: str) -> None:
    assert level_of([about("sweep", facts(worker(), sweeper=sweeper, sweep_lag_s=lag_s))]) == level


@pytest.mark.parametrize(
    ("used", "level", "said"),
    [
        (50, "ok", "50 B of"),
        (85, "note", "85 B of"),
        (95, "problem", "nearly full: 95"),
        (101, "problem", "full: 101"),
    ],
)
def test_memory_is_a_problem_before_it_is_full(used: int, level: str, said: str) -> None:
    found = facts(worker(), used_memory_bytes=used, max_memory_bytes=100)

    assert level_of(judge(found)) == level
    assert about("memory", found).said.startswith(said)


def test_memory_without_a_limit_is_told() -> None:
    found = about("memory", facts(worker(), used_memory_bytes=5_000_000))

    assert level_of([found]) == "ok"
    assert found.said.endswith(" is used, without a limit")


def test_failures_and_losses_of_the_last_hour_are_notes_until_they_are_many() -> None:
    assert level_of(judge(facts(worker(), failures=0, losses=0))) == "ok"
    assert level_of(judge(facts(worker(), failures=1, losses=0))) == "note"
    assert level_of(judge(facts(worker(), failures=0, losses=1))) == "note"
    assert level_of(judge(facts(worker(), failures=MANY_FAILURES, losses=0))) == "problem"
    assert level_of(judge(facts(worker(), failures=0, losses=MANY_LOSSES))) == "problem"
