"""Every step of a question to a person is a crash point: asked, parked, out of time, withdrawn, answered.

A worker dies before each of its requests, a sweep and a person's client too. Then the next worker goes on,
and the agent ends as one that was not disturbed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Store
from fdstore.model.lifecycle import ENDED
from fdstore.model.people import GivenAnswer, PersonAnswer
from fdstore.results.people_config import PeopleSection
from fdstore.store.keys import process_keys
from fdstore.store.processes import leases, people
from fdstore.store.record_format import decode_record
from fdstore.testing import Reply, Request, call, say, turn
from tests.on_redis.running_agents import Agents, Crashed, CrashingStore, ran, running, tool
from tests.round_trips import killed_after
from tests.stored_keys import Stored, check_keys

Execute = Callable[..., Any]

KEY = "fdstore:{solo}:solo:questions"

CODE = """
async def tried(words):
    try:
        return await echo(words=words)
    except PermissionError as error:
        return "denied"
try:
    print(await ask_person("Now?"))
except ValueError as error:
    print(error)
print(await tried("a"))
"""

WITHDRAWING = """
import asyncio
said = await ask_person("That?")
try:
    await asyncio.gather(ask_person("This?"), echo(words="never"), ask_person(" "))
except ValueError:
    print(said)
"""


def calls(request: Request) -> Reply:
    asked = call("ask_person", question="Which?", id="toolu_ask")
    return say("Done.") if request.turn_number else turn(asked, call("echo", words="a", id="toolu_a"))


def code(text: str) -> Callable[[Request], Reply]:
    def script(request: Request) -> Reply:
        if request.turn_number:
            return say(request.tool_results()[-1].text)
        return call("run_python", code=text, id="toolu_code")

    return script


class Lives:
    """One agent, run from the beginning to its end again and again. `meet` is what happens when it waits."""

    def __init__(self, agents: Agents, execute: Execute, section: PeopleSection) -> None:
        self._agents, self._execute, self._section = agents, execute, section
        self.meet: Callable[[], None] = self.pass_time

    def begin(self) -> None:
        self._execute("FLUSHALL")
        ran.clear()
        tools = ("run_python", "read_fd", "ask_person")
        self._agents.launch(tools=tools, python=(tool("echo"),), people=self._section)

    def pass_time(self) -> None:
        """Let the time of all questions be over, and sweep, with a sweeper that dies before each request."""
        for each in self._agents.store.questions():
            self._execute("HSET", KEY, f"{each.number}/until", "1")
        self._agents.expire("solo")
        keys = process_keys("fdstore", "solo")
        for requests in itertools.count():
            if killed_after(self._agents.store, leases.check_overdue(keys), requests):
                break

    def answer(self) -> None:
        """Answer the question that the code awaits, by a client that dies before each request."""
        [question] = self._agents.store.questions()
        for requests in itertools.count():
            given = GivenAnswer(text="yes", question=question.number, by="ann")
            answering = people.answer("fdstore", "solo", given)
            if killed_after(self._agents.store, answering, requests):
                return
            if self._agents.record().state != "waiting":
                return  # the answer was taken, and its client died before it heard of it

    def run(self, crashing: CrashingStore | None = None) -> bool:
        """Run the agent to its end. Return whether its worker died before."""
        try:
            while (state := self._agents.record().state) not in ENDED:
                if state == "ready":
                    self._agents.attempt("solo", crashing)
                else:
                    assert state == "waiting", state
                    self.meet()
        except Crashed:
            return True
        return False

    def ended(self) -> dict[str, Any]:
        """Return how it ended, without times."""
        record, results = self._agents.record(), self._agents.results()
        fields = self._execute("HGETALL", KEY)
        ends = {
            name: decode_record(value, PersonAnswer, "").how
            for name, value in zip(fields[::2], fields[1::2], strict=True)
            if name.endswith(b"/answer")
        }
        return {
            "state": (record.state, record.reason, record.exit_code),
            "results": [(each.call, each.is_error, each.content) for each in results],
            "people": [[(said.question, said.approved) for said in each.facts.people] for each in results],
            "questions": ends,
            "asked": self._execute("HGET", KEY, "next"),
            "open": self._agents.store.questions(),
            "ran": list(ran),
        }


def check_every_crash(agents: Agents, execute: Execute, lives: Lives) -> tuple[dict[str, Any], int]:
    """Let the worker die before each of its requests. Return how an undisturbed agent ends, and the number of
    crash points."""
    lives.begin()
    assert not lives.run()
    expected = lives.ended()
    for requests in itertools.count():
        lives.begin()
        with CrashingStore(agents.store.url, requests) as crashing:
            crashed = lives.run(crashing)
        check_keys(Stored(execute))
        if not crashed:
            break
        if agents.record().state not in ENDED:
            agents.lose("solo")
            assert not lives.run()
        check_keys(Stored(execute))
        found = lives.ended()
        assert found == expected, f"after a crash before request {requests}"
    print(f"{requests} crash points")
    return expected, requests


@pytest.mark.thorough("a fault at every request")
@pytest.mark.parametrize("on_timeout", ["deny", "fail"])
@pytest.mark.parametrize("asks", ["calls", "code"])
def test_what_follows_the_time_of_a_question_is_the_same_wherever_a_worker_dies(
    store: Store, execute: Execute, tmp_path: Path, on_timeout: Any, asks: str
) -> None:
    script = calls if asks == "calls" else code(CODE)
    section = PeopleSection(ask=True, approve=("echo",), timeout="90s", on_timeout=on_timeout)
    with running(store, script, tmp_path) as agents:
        lives = Lives(agents, execute, section)
        expected, points = check_every_crash(agents, execute, lives)

    assert expected["ran"] == []
    assert expected["open"] == []
    assert expected["state"][0] == ("exited" if on_timeout == "deny" else "failed")
    if on_timeout == "deny":
        assert set(expected["questions"].values()) == {"timeout"}
    assert points > 10


@pytest.mark.thorough("other moments of a crash")
def test_what_no_code_waits_for_is_withdrawn_wherever_a_worker_or_the_client_of_a_person_dies(
    store: Store, execute: Execute, tmp_path: Path
) -> None:
    section = PeopleSection(ask=True, approve=("echo",))
    with running(store, code(WITHDRAWING), tmp_path) as agents:
        lives = Lives(agents, execute, section)
        lives.meet = lives.answer
        expected, points = check_every_crash(agents, execute, lives)

    assert expected["ran"] == []
    assert "\nyes\n" in expected["results"][0][2]
    assert sorted(expected["questions"].values()) == ["answer", "withdrawn", "withdrawn"]
    assert points > 10
