"""Asks on real workers: all are answered in their order, and once, also when a worker is killed in the
middle."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

from fdstore.agents.runtime.queue import Dispatcher
from fdstore.client import Process
from fdstore.store.processes import asks, leases
from fdstore.store.processes.asks import Ask, AskPart, AskSettings
from fdstore.testing import Request, say, slow
from tests.dialects import current, every_dialect
from tests.thorough import thorough
from tests.waiting import PATIENCE_S, wait_until
from tests.with_workers.agent_harness import AgentHarness

COUNT = 120


def text_and_question(request: Request) -> list[str]:
    """Return the texts of an ask, which some APIs get as one."""
    content = request.messages[0]["content"]
    if isinstance(content, str):
        text, _, question = content.rpartition("\n\n")
        return [text, question]
    return [part["text"] for part in content]


def question_of(request: Request) -> str:
    return text_and_question(request)[-1]


def start(harness: AgentHarness, proc: Process, count: int = COUNT) -> tuple[str, ...]:
    """Ask about a part of `fd:1` each, and wake the workers."""
    asked = [Ask(n, f"question {n}", [AskPart(f"fd:1#L{n + 1}-{n + 1}")]) for n in range(count)]
    settings = AskSettings(model="any", provider=current().provider, system="You are ASKED.")
    lanes = harness.store.run(asks.start(proc.handle, "call", asked, settings))
    wakes = Dispatcher(harness.url)
    wakes.wake(*lanes)
    wakes.close()
    return lanes


def texts(harness: AgentHarness, proc: Process, count: int = COUNT) -> list[str]:
    found = harness.store.run(asks.answers(proc.handle, "call", range(count)))
    return [found[number].error or found[number].text for number in range(count)]


def answered(harness: AgentHarness, proc: Process) -> int:
    [counts] = harness.store.run(asks.read_counts("fdstore", [(proc.id, "call")]))
    return counts.done if counts else 0


@pytest.fixture
def proc(harness: AgentHarness) -> Process:
    made = harness.store.process("asker")
    made.create("".join(f"line {number}\n" for number in range(COUNT)))
    return made


@pytest.mark.thorough("several workers")
@pytest.mark.parametrize("pool", ["threads", *thorough("the other pool", "prefork")])
def test_asks_are_answered_by_several_workers(harness: AgentHarness, proc: Process, pool: str) -> None:
    harness.set_script({"ASKED": lambda request: slow(say(f"answer to {question_of(request)}"), 0.05)})
    workers = [harness.start_worker(concurrency=1, pool=pool) for _ in range(2)]

    lanes = start(harness, proc)
    for lane in lanes:
        harness.wait(lane)

    assert texts(harness, proc) == [f"answer to question {number}" for number in range(COUNT)]
    assert {harness.record(lane).worker for lane in lanes} == {worker.name for worker in workers}
    sent = {question_of(request): text_and_question(request)[0] for request in harness.requests}
    assert sent["question 7"].rstrip("\n") == "Text 1, fd:1#L8-8:\nline 7"


@every_dialect
def test_what_was_answered_before_a_worker_was_killed_is_not_asked_again(
    harness: AgentHarness, proc: Process
) -> None:
    stored: set[str] = set()
    killed = threading.Event()

    def script(request: Request) -> Any:
        # a question that was answered is asked again only if the answer was not stored before the kill
        assert question_of(request) not in stored
        return slow(say(f"answer to {question_of(request)}"), 0.05 if killed.is_set() else 0.3)

    harness.set_script({"ASKED": script})
    victim = harness.start_worker()
    lanes = start(harness, proc)
    wait_until(lambda: answered(harness, proc) >= COUNT // 3)

    victim.kill()
    found = harness.store.run(asks.answers(proc.handle, "call", range(COUNT)))
    stored |= {f"question {number}" for number in found}
    killed.set()
    harness.start_worker()
    for lane in lanes:
        harness.wait(lane, PATIENCE_S + 2 * leases.LEASE_S)

    assert COUNT // 3 <= len(stored) < COUNT
    assert texts(harness, proc) == [f"answer to question {number}" for number in range(COUNT)]
    asked = Counter(map(question_of, harness.requests))
    assert set(asked) == {f"question {number}" for number in range(COUNT)}
    assert {asked[question] for question in stored} == {1}
    assert max(asked.values()) <= 2
    assert [harness.record(lane).losses for lane in lanes] == [1, 1]
