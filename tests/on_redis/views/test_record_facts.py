"""The times, durations, attempts and delays in journal records, which only people are shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fdstore.agents.loop.conversation import decode_entry, encode_entry
from fdstore.agents.loop.record_facts import FactCollector, RecordFacts, read_facts
from fdstore.client import Process, Store
from fdstore.store.processes import journal
from fdstore.testing import call, fail, say, turn
from tests.on_redis.running_agents import Agents, StopAfterClaim, running, tool

Execute = Callable[..., Any]


def now_ms(execute: Execute) -> int:
    seconds, micros = execute("TIME")
    return int(seconds) * 1000 + int(micros) // 1000


def test_each_record_of_an_agent_has_its_time_by_redis_and_its_duration(
    store: Store, tmp_path: Path, execute: Execute
) -> None:
    with running(store, [call("echo", words="a"), say("Done.")], tmp_path) as agents:
        agents.launch(python=(tool("echo"),))
        before = now_ms(execute)
        agents.attempt("solo")
        after = now_ms(execute)
        _, *facts = map(read_facts, agents.journal())

    times = [each.at_ms for each in facts]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= after
    assert [each.took_ms is not None for each in facts] == [False, True, True, True]
    assert [each.attempt and each.attempt.number for each in facts] == [1, None, None, None]
    assert [(each.turn, each.tool, each.key[:5]) for each in facts] == [
        (0, "", ""),
        (1, "", ""),
        (0, "echo", "turn1"),
        (2, "", ""),
    ]


def test_a_later_attempt_tells_its_worker_and_the_losses_before_it(
    store: Store, tmp_path: Path, execute: Execute
) -> None:
    with running(store, [call("echo", words="a"), say("Done.")], tmp_path) as agents:
        agents.launch(python=(tool("echo"),))
        agents.attempt("solo", stopping=StopAfterClaim(agents, "solo"))
        execute("HSET", "fdstore:{solo}:solo", "state", "running", "lease_until", "1")
        agents.lose("solo")
        agents.run_all("solo")
        facts = list(map(read_facts, agents.journal()))

    [begun] = [each.attempt for each in facts if each.attempt]
    assert (begun.number, begun.worker, begun.losses, begun.before) == (2, "here", 1, "loss")
    assert begun.at_ms <= facts[1].at_ms


class StopWithAnOpenCall:
    """A stop event that is set when the journal has the result of the first of two calls."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents

    def is_set(self) -> bool:
        return len(self._agents.journal()) > 2


def test_an_attempt_after_one_that_was_returned_in_a_call_does_not_say_that_it_waited(
    store: Store, tmp_path: Path
) -> None:
    both = turn(call("echo", words="a"), call("echo", words="b"))
    with running(store, [both, say("Done.")], tmp_path) as agents:
        agents.launch(python=(tool("echo"),))
        first = agents.attempt("solo", stopping=StopWithAnOpenCall(agents))
        agents.run_all("solo")
        facts = list(map(read_facts, agents.journal()))

    assert first == "given back"
    assert [each.attempt.before for each in facts if each.attempt] == ["", "return"]


def test_an_answer_tells_the_tries_that_failed_before_it(store: Store, tmp_path: Path) -> None:
    replies = [fail(529, message="all are busy", retry_after=0.01)] * 2
    with running(store, [*replies, say("Done.")], tmp_path) as agents:
        agents.launch()
        agents.attempt("solo")
        facts = read_facts(agents.journal()[2])

    assert [(each.number, each.pause_ms) for each in facts.retries] == [(1, 10), (2, 10)]
    assert "all are busy" in facts.retries[0].reason


def test_a_record_whose_reply_was_lost_is_stored_once_with_its_first_time(
    store: Store, proc: Process, execute: Execute
) -> None:
    key = proc.handle.keys.journal
    record = '{"kind":"note","text":"a note"}'
    store.run(journal.append(proc.handle, 0, [record]))
    execute("LSET", key, 0, record[:-1] + ',"at_ms":1700000000000}')

    assert store.run(journal.append(proc.handle, 0, [record])).length == 1

    [stored] = execute("LRANGE", key, 0, -1)
    assert json.loads(stored)["at_ms"] == 1700000000000


def test_facts_change_nothing_that_is_sent_to_a_model() -> None:
    plain = '{"kind":"note","text":"a note"}'
    collector = FactCollector()
    collector.stored_in(2.5)
    written = collector.add_to(plain, took_s=1.5).encode()

    assert read_facts(written) == RecordFacts(took_ms=1500, outage_ms=2500)
    assert encode_entry(decode_entry(written)) == plain
