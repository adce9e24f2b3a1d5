"""Entries of a conversation, built from journal records: any part alone, bounded, and of any age."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from fdstore.inspector.reading.build_entries import build_entries
from fdstore.inspector.reading.cutting import cut_value
from fdstore.inspector.reading.pending import mark_pending, what_pends
from fdstore.model.records import ProcessRecord

T = 1_795_365_840_000


def answer(turn: int, *blocks: dict[str, Any], **facts: Any) -> bytes:
    usage = {"input_tokens": 900, "output_tokens": 30, "cache_read_tokens": 800}
    stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    known = {"turn": turn, "took_ms": 2500, "at_ms": T + turn * 10_000} if turn else {}
    return encode(kind="assistant", content=blocks, stop_reason=stop, **usage, **known, **facts)


def use(id: str, name: str = "read_fd", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def result(call: str, content: str = "ok", **facts: Any) -> bytes:
    return encode(kind="result", call=call, content=content, **facts)


def encode(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def shapes(records: list[bytes], first: int = 0) -> list[tuple[Any, ...]]:
    return [(e.position, e.part, e.kind, e.tool, e.call) for e in build_entries(records, first)]


def test_an_answer_its_calls_and_their_results_are_entries_with_times_and_durations() -> None:
    records = [
        encode(kind="start", system="You are solo.", content="Go.", at_ms=T),
        answer(1, text("I look."), use("a", fd="fd:3", start=2)),
        result(
            "a",
            '<fd_result fd="fd:8" pages="3">',
            facts={"stored": [{"fd": "fd:7", "pages": 3}]},
            tool="read_fd",
            key="turn1:a",
            took_ms=40,
            at_ms=T + 11_000,
        ),
    ]

    entries = build_entries(records)

    assert [e.kind for e in entries] == ["system", "prompt", "answer", "call", "result"]
    said, called, returned = entries[2:]
    assert (said.at, said.duration_s, said.usage.tokens, said.number) == ((T + 10_000) / 1000, 2.5, 930, 1)
    assert (called.tool, called.arguments, called.call) == ("read_fd", {"fd": "fd:3", "start": 2}, "turn1:a")
    assert (returned.duration_s, returned.fds, returned.call) == (0.04, ("fd:7",), "turn1:a")


def test_a_part_of_a_journal_has_the_same_entries_as_the_whole() -> None:
    records = [encode(kind="start", system="", content="Go.", at_ms=T)]
    for turn in range(1, 6):
        records.append(answer(turn, use("call_1", "a"), use("call_1", "b")))
        records.append(result("call_1", tool="a", key=f"turn{turn}:call_1", took_ms=1))
        records.append(result("call_1", tool="b", key=f"turn{turn}:call_1#2", took_ms=1))
    whole = build_entries(records)

    for first in range(len(records)):
        assert build_entries(records[first:], first) == [e for e in whole if e.position >= first]


def test_a_result_that_waited_took_the_time_since_its_answer() -> None:
    [_, _, waited] = build_entries(
        [answer(1, use("a", "spawn")), result("a", tool="spawn", key="turn1:a", at_ms=T + 70_000)]
    )

    assert waited.duration_s == 60.0


def test_records_of_older_versions_have_no_times_but_the_names_of_their_tools() -> None:
    entries = build_entries([answer(0, use("a"), use("b", "pipe")), result("b"), result("a")])

    assert [(e.tool, e.at, e.call) for e in entries if e.kind == "result"] == [
        ("pipe", None, "b"),
        ("read_fd", None, "a"),
    ]


def test_losses_outages_and_failed_tries_come_before_the_record_that_tells_them() -> None:
    begun = {"number": 2, "worker": "w2", "at_ms": T, "losses": 1, "before": "loss"}
    failed = {"number": 1, "after_ms": 100, "pause_ms": 500, "reason": "all are busy"}

    entries = build_entries([answer(1, text("Done."), attempt=begun, retries=[failed], outage_ms=4000)])

    assert [e.kind for e in entries] == ["attempt", "outage", "retry", "answer"]
    assert (entries[0].number, entries[0].worker, entries[0].losses, entries[0].at) == (2, "w2", 1, T / 1000)
    assert entries[1].duration_s == 4.0
    assert (entries[2].text, entries[2].at) == ("all are busy", (T + 10_000 - 2500 + 100) / 1000)


def test_cleared_results_are_marked_and_told() -> None:
    cleared = encode(kind="cleared", lines={"turn1:a": "page 2 of fd:3 was read"}, at_ms=T)
    entries = build_entries(
        [answer(1, use("a")), result("a", key="turn1:a"), result("b", key="turn1:b"), cleared]
    )

    assert [(e.call, e.cleared) for e in entries if e.kind == "result"] == [
        ("turn1:a", True),
        ("turn1:b", False),
    ]
    assert (entries[-1].kind, entries[-1].calls) == ("cleared", ("turn1:a",))


def test_damaged_and_newer_records_are_entries_too() -> None:
    assert [e.kind for e in build_entries([b"", b"[]", b'{"kind":"condensed"}', b"{" * 5000])] == [
        "unreadable",
        "unreadable",
        "unknown",
        "unreadable",
    ]


def test_what_is_shown_is_bounded_whatever_a_model_writes() -> None:
    huge = {f"k{i}" * 40: ["x" * 10_000] * 50 for i in range(50)}
    deep: Any = "end"
    for _ in range(150):
        deep = [deep]
    record = answer(1, text("y" * 100_000), use("a", "t" * 5000, huge=huge, deep=deep))

    entries = build_entries([record], max_chars=500)

    assert len(msgspec.json.encode(entries)) < 4000
    assert (entries[0].chars, entries[0].is_cut) == (100_000, True)
    assert len(json.dumps(cut_value([[[["z" * 100] * 20] * 20] * 20] * 20, 1000))) < 3000


def test_the_facts_of_a_result_are_bounded_too() -> None:
    stored = [{"fd": f"fd:{number}"} for number in range(1, 5001)]
    facts = {"stored": stored, "error": {"type": "not_found", "message": "x" * 100_000}}

    [entry] = build_entries([result("a", facts=facts)], max_chars=500)

    assert len(msgspec.json.encode(entry)) < 4000
    assert (len(entry.facts.error.message), entry.facts.stored[0].fd) == (500, "fd:1")


def test_calls_without_results_are_pending_while_the_process_runs() -> None:
    entries = build_entries([answer(1, use("a"), use("b", "pipe")), result("a", key="turn1:a")])
    running = ProcessRecord(id="solo", state="running", worker="w", lease_until=5.0, trouble=None)

    marked, open_calls = mark_pending(entries, running)

    assert [e.tool for e in marked if e.pending] == ["pipe"]
    assert str(what_pends(running, open_calls, 1.0, 2.0)) == "pipe runs"
    assert str(what_pends(running, [], 1.0, 9.0)) == "the model is asked; the lease of w has expired"
    assert [what_pends(running, calls, 1.0, 2.0).doing for calls in (open_calls, [])] == [
        "runs pipe",
        "asks the model",
    ]
    assert what_pends(running, [], 1.0, 9.0).doing == "was lost with w; waits for another"
    ended = ProcessRecord(id="solo", state="cancelled")
    assert mark_pending(entries, ended) == (entries, [])
    assert what_pends(ended, [], 1.0, 2.0) is None


def test_what_waits_says_for_what() -> None:
    ready = ProcessRecord(id="solo", state="ready")
    waiting = ProcessRecord(id="solo", state="waiting", waiting_for=("solo.1", "solo.2"))
    asked = ProcessRecord(id="solo", state="running", trouble="try 3: all are busy; asking again in 8.0 s")

    assert str(what_pends(ready, [], None, 1.0)) == "waits for a worker"
    assert str(what_pends(waiting, [], None, 1.0)) == "waits for solo.1, solo.2; its slot is free"
    assert str(what_pends(asked, [], None, 1.0)).startswith("the model is asked; try 3: ")
    assert what_pends(ProcessRecord(id="solo", state="open"), [], None, 1.0) is None
