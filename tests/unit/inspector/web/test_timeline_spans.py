"""The spans of a timeline: what a process waited for and did, and how many spans become few."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.agents.loop.conversation import Assistant, Result, encode_entry
from fdstore.agents.loop.record_facts import AttemptFacts, RecordFacts, add_facts
from fdstore.elements.facts import ResultFacts
from fdstore.elements.kinds import PersonReply
from fdstore.inspector.web.timeline import TimelineRow
from fdstore.inspector.web.timeline_spans import MAX_KEPT, MAX_SPANS, TimelineSpan, Track, merge
from fdstore.model.records import ProcessRecord
from fdstore.tools.process_task import SpawnTask

TASK = encode_entry(SpawnTask(query="Why?")).encode()


def process(state: str, **more: object) -> ProcessRecord:
    return msgspec.convert({"id": "triage.1", "state": state, "started_at": 100.0, **more}, ProcessRecord)


def answer(at_s: float, *tools: str, took_s: float = 1.0, attempt: AttemptFacts | None = None) -> bytes:
    blocks = [{"type": "tool_use", "id": f"t{n}", "name": tool, "input": {}} for n, tool in enumerate(tools)]
    record = encode_entry(Assistant(content=blocks, stop_reason="tool_use"))
    facts = RecordFacts(at_ms=round(at_s * 1000), took_ms=round(took_s * 1000), attempt=attempt)
    return add_facts(record, facts).encode()


def result(at_s: float, call: str, took_s: float | None, *, is_error: bool = False) -> bytes:
    record = encode_entry(Result(call=call, content="...", is_error=is_error))
    took_ms = None if took_s is None else round(took_s * 1000)
    return add_facts(record, RecordFacts(at_ms=round(at_s * 1000), took_ms=took_ms)).encode()


def attempt(number: int, at_s: float, before: str = "", losses: int = 0) -> AttemptFacts:
    facts = {"number": number, "worker": "w", "at_ms": round(at_s * 1000), "before": before, "losses": losses}
    return msgspec.convert(facts, AttemptFacts)


def spans(now: ProcessRecord, *records: bytes, **times: float) -> list[tuple[str, str, float, float | None]]:
    track = Track(now)
    track.length = len(records)
    track.ready_at, track.claimed_at = times.get("ready_at"), times.get("claimed_at")
    track.add(records)
    return [(each.kind, each.text, each.at, each.until) for each in track.spans(now)]


def test_the_time_in_the_queue_is_apart_from_that_of_the_model_and_of_tools() -> None:
    records = [TASK, answer(140, "read_fd", attempt=attempt(1, 130)), result(143, "t0", 3)]

    assert spans(process("exited", ended_at=150.0, attempt=1), *records, claimed_at=130.0) == [
        ("queue", "waited for a worker", 100, 130),
        ("answer", "answer", 139, 140),
        ("call", "read_fd", 140, 143),
    ]


def test_a_process_that_waits_now_is_in_the_queue_since_it_became_ready() -> None:
    assert spans(process("ready"), TASK, ready_at=100.0) == [("queue", "waits for a worker", 100, None)]


def test_a_process_that_was_killed_before_its_first_attempt_was_in_the_queue_to_its_end() -> None:
    assert spans(process("cancelled", ended_at=160.0), TASK, ready_at=100.0) == [
        ("queue", "waited for a worker", 100, 160)
    ]


def test_an_answer_that_is_awaited_is_in_progress_since_the_claim() -> None:
    assert spans(process("running", attempt=1), TASK, ready_at=100.0, claimed_at=130.0) == [
        ("queue", "waited for a worker", 100, 130),
        ("answer", "answer, in progress", 130, None),
    ]


def test_of_several_calls_the_first_without_a_result_is_in_progress() -> None:
    records = [
        TASK,
        answer(140, "read_fd", "search_fd", "put", attempt=attempt(1, 130)),
        result(143, "t0", 3),
    ]

    found = spans(process("running", attempt=1), *records, claimed_at=130.0)

    assert found[-1] == ("call", "search_fd; then put, in progress", 143, None)


def test_calls_of_a_parked_process_are_in_progress_and_so_is_its_wait() -> None:
    records = [TASK, answer(140, "spawn", "spawn", attempt=attempt(1, 130))]

    found = spans(process("waiting", attempt=1), *records, claimed_at=130.0)

    assert sorted(found[-3:]) == [
        ("call", "spawn, in progress", 140, None),
        ("call", "spawn, in progress", 140, None),
        ("processes", "waits for other processes", 140, None),
    ]


def test_a_process_whose_children_ended_is_in_the_queue_until_it_is_claimed_again() -> None:
    records = [TASK, answer(140, "spawn", attempt=attempt(1, 130))]
    parked = ("processes", "waited for other processes", 140, 170)

    ready = spans(process("ready", attempt=1), *records, ready_at=170.0, claimed_at=130.0)
    running = spans(process("running", attempt=2), *records, ready_at=170.0, claimed_at=180.0)

    assert ready[-2:] == [parked, ("queue", "waits for a worker", 170, None)]
    assert running[-3:] == [
        parked,
        ("queue", "waited for a worker", 170, 180),
        ("call", "spawn, in progress", 180, None),
    ]


def test_a_wait_for_a_person_is_apart_from_those_for_processes() -> None:
    reply = ResultFacts(people=(PersonReply(who="ann", approved=True, tool="deploy"),))
    answered = encode_entry(Result(call="t0", content="done", facts=reply))
    records = [
        *(TASK, answer(110, "spawn", attempt=attempt(1, 101)), result(130, "t0", 20)),
        answer(141, "deploy", attempt=attempt(2, 130, "wait")),
        add_facts(answered, RecordFacts(at_ms=500_000, attempt=attempt(3, 499, "wait"))).encode(),
    ]

    found = [each for each in spans(process("running"), *records) if each[0] in ("processes", "person")]

    assert found == [("person", "waited for a person", 141, 499)]
    now = process("waiting", waiting_for=["person"])
    assert spans(now, *records[:4])[-1] == ("person", "waits for a person", 141, None)  # no call is at work


def test_a_lost_process_is_in_the_queue_since_its_last_record() -> None:
    records = [TASK, answer(140, "read_fd", attempt=attempt(1, 130))]
    taken_over = answer(200, took_s=2, attempt=attempt(2, 190, "loss", losses=1))

    ready = spans(process("ready", attempt=1, losses=1), *records, ready_at=170.0, claimed_at=130.0)
    ended = spans(
        process("exited", attempt=2, losses=1, ended_at=201.0), *records, taken_over, claimed_at=190.0
    )

    assert ready[-1] == ("queue", "waits for a worker", 140, None)
    assert ended[-3:] == [
        ("queue", "waited for a worker", 140, 190),
        ("loss", "lost; attempt 2", 190, 190),
        ("answer", "answer", 198, 200),
    ]


def test_a_call_that_a_kill_ended_has_failed() -> None:
    records = [TASK, answer(140, "read_fd", attempt=attempt(1, 130))]
    killed = process("cancelled", attempt=1, ended_at=180.0)

    assert spans(killed, *records, claimed_at=130.0)[-1] == ("call", "read_fd, not ended, failed", 140, 180)


@pytest.mark.parametrize(("tool", "is_wait"), [("spawn", True), ("wait", True), ("read_fd", False)])
def test_a_failed_call_that_only_waited_for_others_is_a_wait(tool: str, is_wait: bool) -> None:
    records = [TASK, answer(140, tool, tool, attempt=attempt(1, 130)), result(160, "t0", 20, is_error=True)]
    killed = process("cancelled", attempt=1, ended_at=180.0)
    track = Track(killed)
    track.length = len(records)
    track.add(records)

    failed = [(each.at, each.until, each.is_wait) for each in track.spans(killed) if each.is_error]

    assert failed == [(140, 160, is_wait), (160, 180, is_wait)]


def test_a_journal_in_parts_has_the_spans_of_the_whole() -> None:
    records = [TASK, answer(140, "spawn", attempt=attempt(1, 130)), result(160, "t0", None), answer(170)]
    now = process("exited", attempt=1, ended_at=171.0)
    parts = Track(now)
    parts.length = len(records)
    for each in records:
        parts.add([each])

    assert [(each.kind, each.text, each.at, each.until) for each in parts.spans(now)] == spans(now, *records)


def test_records_that_are_not_read_yet_are_a_span_of_their_own() -> None:
    now = process("running", attempt=1)
    track = Track(now)
    track.length = 41
    track.add([TASK])

    assert [(each.kind, each.text) for each in track.spans(now)] == [("unread", "40 records not read yet")]


def test_neighbours_are_merged_into_one_that_has_their_count() -> None:
    calls = [
        TimelineSpan(kind="call", label="read_fd", at=at, until=at + 0.5, position=at) for at in range(12)
    ]
    later = TimelineSpan(kind="call", label="put", at=100, until=101, position=100)

    assert [each.text for each in merge([*calls, later], 2)] == ["12 calls of read_fd", "put"]
    assert [each.text for each in merge([*calls, later], 1)] == ["13 calls"]


def test_a_failed_call_stays_apart_from_the_others() -> None:
    calls = [
        TimelineSpan(kind="call", label="get", at=at, until=at + 0.5, position=at, is_error=at == 5)
        for at in range(12)
    ]

    assert [each.text for each in merge(calls, 1)] == ["11 calls of get", "get, failed"]


KINDS = st.sampled_from(["answer", "call", "queue", "processes", "retry"])


@st.composite
def some_spans(draw: st.DrawFn) -> TimelineSpan:
    at = draw(st.floats(0, 1000))
    until = draw(st.one_of(st.none(), st.floats(0, 100).map(lambda took: at + took)))
    return TimelineSpan(
        kind=draw(KINDS), label="x", at=at, until=until, position=0, is_error=draw(st.booleans())
    )


@given(st.lists(some_spans(), max_size=60), st.integers(1, 30))
def test_merging_leaves_nothing_out_and_keeps_its_bound(found: list[TimelineSpan], most: int) -> None:
    merged = merge(found, most)

    open_ones = sum(each.until is None for each in found)
    assert sum(each.count for each in merged) == len(found)
    assert len(merged) <= max(most, 10 + open_ones)
    assert [each.at for each in merged] == sorted(each.at for each in merged)


@pytest.mark.parametrize("count", [40, 2000])
def test_a_journal_of_any_length_has_few_spans_that_count_all_its_calls(count: int) -> None:
    records = [TASK]
    for number in range(count):
        records += [
            answer(200 + 10 * number, "read_fd"),
            result(203 + 10 * number, "t0", 2, is_error=number == 7),
        ]
    now = process("exited", attempt=1, ended_at=1e6)
    track = Track(now)
    track.length = len(records)
    for begin in range(0, len(records), 100):
        track.add(records[begin : begin + 100])

    found = track.spans(now)

    row = TimelineRow(process="triage.1", state="exited", at=100.0, until=1e6, spans=found)
    assert len(found) <= MAX_SPANS < MAX_KEPT
    sums = row.sums(1e6)
    assert (sums["call"].count, sums["failed"].count, sums["answer"].count) == (count, 1, count)
