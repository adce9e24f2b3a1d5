"""Programs that ask a person, or whose calls wait for a yes: suspended meanwhile, and each done once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Store
from fdstore.model.lifecycle import ENDED
from fdstore.results.people_config import PeopleSection
from fdstore.store.processes import people
from fdstore.testing import Reply, Request, call, say
from tests.on_redis.running_agents import READER, Agents, Crashed, CrashingStore, ran, running, tool
from tests.stored_keys import Stored, check_keys

Execute = Callable[..., Any]
EVERYTHING = PeopleSection(ask=True, approve=("echo", "spawn"))


class Codes:
    """A model that runs one program, and ends with its result."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __call__(self, request: Request) -> Reply:
        if "READER" in request.system:
            return say("It was read.")
        if request.turn_number == 0:
            return call("run_python", code=self.code, id="toolu_0")
        return say(request.tool_results()[-1].text)


def launch(agents: Agents, section: PeopleSection = EVERYTHING) -> None:
    tools = ("run_python", "read_fd", *(("ask_person",) if section.ask else ()))
    agents.launch(tools=tools, python=(tool("echo"),), people=section, others=[READER])


def answer(store: Store) -> bool:
    """Answer everything that is asked: `red`; yes to `a`, no to `b`, `d` instead of `c`; yes to agents."""
    asked = store.questions()
    for each in asked:
        words = each.arguments.get("words")
        if each.kind == "question":
            store.answer("solo", "red", question=each.number, by="ann", door="cli")
        elif words == "b":
            store.answer("solo", question=each.number, approve=False, reason="No.", by="ann")
        else:
            changed = {"words": "d"} if words == "c" else None
            store.answer("solo", question=each.number, approve=True, arguments=changed, by="ann")
    return bool(asked)


def run_to_its_end(agents: Agents, store: Store, crashing: CrashingStore | None = None) -> bool:
    """Run the tree and answer its questions. Return whether it crashed before its end."""
    try:
        while agents.record().state not in ENDED:
            ready = [member.id for member in store.tree("solo").members if member.state == "ready"]
            for process in ready:
                agents.attempt(process, crashing)
            if not ready and not answer(store):
                return True
    except Crashed:
        return True
    return False


def test_a_program_asks_a_person_and_holds_no_slot(store: Store, tmp_path: Path) -> None:
    code = 'colour = await ask_person("Which colour?", ["red", "blue"])\nprint("It is", colour)'
    with running(store, Codes(code), tmp_path) as agents:
        launch(agents)

        assert agents.attempt("solo") == "waiting"
        [question] = store.questions()
        store.answer("solo", choice=2, by="ann", door="cli")
        assert agents.attempt("solo") == "ended"

        assert (question.text, question.choices, question.in_code) == ("Which colour?", ("red", "blue"), True)
        assert question.call == "turn1:toolu_0/0"
        assert "It is blue" in agents.answer()
        [said] = agents.results()[0].facts.people
        assert (said.who, said.door, said.choice) == ("ann", "cli", 2)


def test_calls_of_code_wait_for_a_yes(store: Store, tmp_path: Path) -> None:
    code = """
import asyncio
async def tried(words):
    try:
        return await echo(words=words)
    except PermissionError as error:
        return str(error)
print(await asyncio.gather(*[tried(words) for words in ["a", "b", "c"]]))
"""
    with running(store, Codes(code), tmp_path) as agents:
        launch(agents)

        assert agents.attempt("solo") == "waiting"
        assert [each.arguments["words"] for each in store.questions()] == ["a", "b", "c"]
        assert ran == []
        answer(store)
        assert agents.attempt("solo") == "ended"

        assert ran == ["a", "d"]
        shown = agents.results()[0].content
        assert "['you said a', 'The call was not run: No.', 'you said d']" in shown
        assert 'ann: The arguments of echo were changed to: {"words":"d"}\n' in shown
        said = agents.results()[0].facts.people
        assert [(each.tool, each.approved) for each in said] == [
            *(("echo", True), ("echo", False), ("echo", True)),
        ]


@pytest.mark.parametrize("approved", [True, False])
def test_code_cannot_start_an_agent_around_an_approval(store: Store, tmp_path: Path, approved: bool) -> None:
    code = """
try:
    r = await spawn("reader", "Read.")
    print(r.answer)
except PermissionError as error:
    print(error)
"""
    with running(store, Codes(code), tmp_path) as agents:
        launch(agents, PeopleSection(approve=("spawn",)))

        assert agents.attempt("solo") == "waiting"
        [question] = store.questions()
        assert (question.tool, question.arguments["program"]) == ("spawn", "reader")
        store.answer("solo", approve=approved, by="ann")
        agents.run_all("solo")

        assert ("It was read." in agents.answer()) == approved
        assert len(store.tree("solo").members) == 1 + approved


def test_a_question_that_is_not_awaited_any_more_is_withdrawn_with_the_program(
    store: Store, tmp_path: Path, execute: Execute
) -> None:
    code = """
import asyncio
said = await ask_person("That?")
try:
    await asyncio.gather(ask_person("This?"), ask_person(" "))
except ValueError:
    print(said)
"""
    with running(store, Codes(code), tmp_path) as agents:
        launch(agents)
        agents.attempt("solo")
        store.answer("solo", "yes")

        agents.run_all("solo")

        forgotten = store.run(people.asked_question("fdstore", "solo", 2))
        assert (forgotten.question.text, forgotten.answer and forgotten.answer.how) == ("This?", "withdrawn")
        assert "\nyes\n" in agents.results()[0].content
        assert agents.record().state == "exited"
        assert store.questions() == []
        check_keys(Stored(execute))


PROGRAM = """
import asyncio
async def tried(words):
    try:
        return await echo(words=words)
    except PermissionError as error:
        return "denied"
    except ValueError as error:
        return "interrupted"
first = await ask_person("Go on?")
both = await asyncio.gather(tried("a"), tried("b"), ask_person("And now?"))
r = await spawn("reader", "Read.")
last = await tried("c")
print(first, both, r.answer, last)
"""


@pytest.mark.thorough("a fault at every request")
@pytest.mark.parametrize("step", [7, 2])
def test_a_program_that_dies_at_any_request_runs_what_was_approved_once_and_what_was_denied_never(
    store: Store, redis_url: str, execute: Execute, tmp_path: Path, step: int
) -> None:
    for requests in itertools.count(0, step):
        execute("FLUSHALL")
        with running(store, Codes(PROGRAM), tmp_path) as agents:
            launch(agents)
            with CrashingStore(redis_url, requests) as crashing:
                crashed = run_to_its_end(agents, store, crashing)
            check_keys(Stored(execute))
            for member in store.tree("solo").members:
                if member.state not in ENDED:
                    agents.lose(member.id)
            run_to_its_end(agents, store)

            shown = agents.answer()
            assert agents.record().state == "exited", requests
            assert ran.count("a") <= 1
            assert ran.count("d") <= 1
            assert not {"b", "c"} & set(ran)
            first = "you said a" if "you said a" in shown else "interrupted"
            last = "you said d" if "you said d" in shown else "interrupted"
            assert f"red ['{first}', 'denied', 'red'] It was read. {last}" in shown, requests
            assert crashed or {first, last} == {"you said a", "you said d"}
            assert execute("HGET", "fdstore:{solo}:solo:questions", "next") == b"7"
            assert len(agents.results()[0].facts.people) == 6
        if not crashed:
            break
    assert requests > 40
