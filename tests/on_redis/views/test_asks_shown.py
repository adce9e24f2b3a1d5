"""People see the asks of a program as one line with how many are done, and each of them on request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fdstore.agents.loop.conversation import Assistant, encode_entry
from fdstore.cli import cli
from fdstore.cli.watch import TreeWatcher
from fdstore.client import Process, Store
from fdstore.inspector.reading.conversation import conversation
from fdstore.store.processes import asks, journal, process_records, processes
from fdstore.store.processes.asks import Answered, Ask, AskAnswer, AskPart, AskSettings
from fdstore.store.views.shown_processes import shown_tree
from fdstore.testing import Request, fail, say
from fdstore.testing.replies import Reply
from tests.on_redis.child_agents import claim
from tests.on_redis.running_agents import Agents, running

SETTINGS = AskSettings(model="any", at_once=50)


def script(request: Request) -> Reply:
    question = str(request.messages[0]["content"][-1]["text"])
    return fail(400, message="no") if question == "question 7" else say(f"The answer to {question}.")


@pytest.fixture
def agents(store: Store, tmp_path: Path) -> Iterator[Agents]:
    with running(store, script, tmp_path) as agents:
        yield agents


def ask(store: Store, proc: Process, count: int, call: str = "call") -> tuple[str, ...]:
    asked = [Ask(number, f"question {number}", [AskPart("fd:1#L1-2")]) for number in range(count)]
    return store.run(asks.start(proc.handle, call, asked, SETTINGS))


def fdstore(store: Store, *arguments: str) -> str:
    result = CliRunner().invoke(cli, ["--url", store.url, *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def answer_some(store: Store, proc: Process, lane: str, count: int) -> None:
    """Take asks in this lane, and answer some of them."""
    handle = claim(store, lane)
    store.run(asks.take_next(handle, proc.handle, "call", width=25, running=[], answered=[]))
    answered = [Answered(number=number, answer=AskAnswer(text="Yes.", lane=lane)) for number in range(count)]
    rest = range(count, 25)
    store.run(asks.take_next(handle, proc.handle, "call", width=25, running=rest, answered=answered))


def test_a_thousand_asks_are_one_line_of_ps_and_top(store: Store, proc: Process) -> None:
    proc.create("a\nb\n")
    lanes = ask(store, proc, 1000)
    answer_some(store, proc, lanes[0], 12)

    for verb in (["ps"], ["ps", "triage"], ["ps", "--sort", "started"], ["top", "--once"]):
        shown = fdstore(store, *verb)
        [line] = [line for line in shown.splitlines() if "asks " in line]
        assert "asks 12 of 1000" in line
        assert "triage.1 " in line
        assert "running" in line
        assert "triage.2" not in shown
    members = [json.loads(line) for line in fdstore(store, "--json", "ps").splitlines()]
    assert [member.get("asks") for member in members] == [None, {"total": 1000, "done": 12, "failed": 0}]


def test_asks_that_have_ended_keep_their_line(store: Store, proc: Process, agents: Agents) -> None:
    proc.create("a\nb\n")
    ask(store, proc, 40)
    ask(store, proc, 3, "another call")

    agents.run_all("triage")

    lines = [line for line in fdstore(store, "ps", "triage").splitlines() if "asks" in line]
    assert ["asks 40 of 40, 1 failed" in line for line in lines] == [True, False]
    assert "asks 3 of 3 " in lines[1]
    assert all("exited" in line for line in lines)
    found = store.run(shown_tree("fdstore", "triage")).members
    assert sum(each.tokens for each in found) == store.tree("triage").all_tokens > 0


def test_the_log_of_a_lane_has_the_asks_that_it_answered(store: Store, proc: Process, agents: Agents) -> None:
    proc.create("a\nb\n")
    [lane] = ask(store, proc, 20)
    agents.run_all("triage")

    shown = fdstore(store, "log", lane)

    assert "answers asks of triage, call call" in shown
    assert "3: question 3 (fd:1#L1-2)" in shown
    assert "The answer to question 3." in shown
    assert "model_failed: the model answered 400" in shown
    assert "exited with code 0" in shown
    page = store.run(conversation("fdstore", lane))
    found = [entry for entry in page.entries if entry.kind == "ask"]
    assert sorted(entry.number for entry in found) == list(range(20))
    assert len({(entry.position, entry.part) for entry in page.entries}) == len(page.entries)
    assert all(entry.at for entry in found)


def test_log_shows_all_asks_of_a_process(store: Store, proc: Process, agents: Agents) -> None:
    proc.create("a\nb\n")
    ask(store, proc, 40)

    waiting = [json.loads(line) for line in fdstore(store, "--json", "log", "triage", "--asks").splitlines()]
    agents.run_all("triage")
    shown = [json.loads(line) for line in fdstore(store, "--json", "log", "triage", "--asks").splitlines()]

    assert [each.get("number", 0) for each in waiting] == list(range(40))
    assert all(each["pending"] for each in waiting)
    assert [each.get("number", 0) for each in shown] == list(range(40))
    assert shown[3]["arguments"] == {"question": "question 3", "parts": ["fd:1#L1-2"]}
    assert shown[3]["text"] == "The answer to question 3."
    assert shown[3]["usage"]["output_tokens"] > 0
    assert shown[7]["is_error"]
    assert fdstore(store, "log", "triage", "--asks", "-n", "2").count("question") == 4
    assert "have asked a model nothing" in fdstore(store, "log", store.process("other").id, "--asks")


def test_the_conversation_says_how_many_asks_of_a_call_are_done(
    store: Store, proc: Process, agents: Agents, execute: Any
) -> None:
    proc.create("a\nb\n")
    child = processes.create_child(proc.handle, None, state="ready", brief='{"kind":"brief","query":"Go."}')
    handle = store.run(child)
    use = {"type": "tool_use", "id": "toolu_1", "name": "run_python", "input": {"code": "ask()"}}
    answer = encode_entry(Assistant(content=[use], stop_reason="tool_use"))
    record = answer[:-1] + ',"turn":1}'
    store.run(journal.append(handle, 1, [record]))
    [key] = [
        each.call for each in store.run(conversation("fdstore", handle.id)).entries if each.kind == "call"
    ]
    store.run(asks.start(handle, key, [Ask(0, "one"), Ask(1, "two")], SETTINGS))

    assert "asks 0 of 2" in fdstore(store, "log", handle.id)
    [lane] = [each for each in store.tree("triage").members if each.kind == "asks"]
    agents.attempt(lane.id)

    assert "asks 2 of 2" in fdstore(store, "log", handle.id)
    assert store.run(process_records.record("fdstore", lane.id)).call == key


def test_run_reports_the_progress_of_asks_in_lines_of_the_process(
    store: Store, proc: Process, agents: Agents
) -> None:
    proc.create("a\nb\n")
    ask(store, proc, 40)
    lines: list[str] = []

    with TreeWatcher(store, "triage", lambda event: lines.append(str(event))).kept():
        agents.run_all("triage")

    told = "\n".join(lines)
    assert "asks 40 of 40, 1 failed" in told
    assert "triage.1" not in told


def test_a_second_lane_that_begins_after_the_first_is_no_takeover(
    store: Store, proc: Process, tmp_path: Path
) -> None:
    proc.create("a\nb\n")
    lanes = ask(store, proc, 40)
    lines: list[str] = []
    watch = TreeWatcher(store, "triage", lambda event: lines.append(str(event)))

    def look_and_answer(request: Request) -> Reply:
        watch.look()
        return script(request)

    with running(store, look_and_answer, tmp_path) as agents:
        for lane in lanes:
            agents.attempt(lane)
            watch.look()

    assert len(lanes) == 2
    assert "asks 40 of 40, 1 failed" in "\n".join(lines)
    assert not [line for line in lines if "continues" in line]
