"""Agents that ask a person: they wait at no cost, go on with the answer, and run what was approved."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import fdstore
from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.program_limits import Limits
from fdstore.agents.loop.program_loader import Bundle, Program
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.model.lifecycle import ENDED
from fdstore.results.people_config import PeopleSection
from fdstore.store.processes import leases, processes
from fdstore.testing import Turn, call, say, turn
from fdstore.wire._sync.runner import Runner
from tests.on_redis.running_agents import SMALL, Agents, AgentsOf, Crashed, CrashingStore, ran, running, tool
from tests.stored_keys import Stored, check_keys

Execute = Callable[..., Any]
ASKING = PeopleSection(ask=True)
APPROVING = PeopleSection(approve=("echo", "fd_to_file"))
QUESTION = call("ask_person", question="Which colour?", choices=["red", "blue"], id="toolu_ask")


def launch(agents: Agents, people: PeopleSection, *tools: str, **more: Any) -> None:
    tools = ("ask_person", *tools) if people.ask else tools
    agents.launch(tools=tools, python=(tool("echo"), tool("lines")), people=people, **more)


def result(agents: Agents, number: int = -1) -> Any:
    return agents.results()[number]


def test_an_agent_waits_for_an_answer_and_goes_on_with_it(agents_of: AgentsOf, store: Store) -> None:
    agents = agents_of([QUESTION, say("Done.")])
    launch(agents, ASKING)

    assert agents.attempt("solo") == "waiting"
    waiting = agents.record()
    [question] = store.questions("solo")
    answer = store.answer("solo", "green", by="ann", door="cli")
    assert agents.attempt("solo") == "ended"

    assert (waiting.state, waiting.waiting_for, waiting.worker) == ("waiting", ("person",), None)
    assert (question.text, question.choices, question.call) == (
        *("Which colour?", ("red", "blue"), "turn1:toolu_ask"),
    )
    assert question.program == "solo"
    found = result(agents)
    assert found.content.startswith('<person_answer who="ann" when="')
    assert found.content.endswith('">\ngreen\n</person_answer>')
    [said] = found.facts.people
    assert (said.who, said.door, said.question, said.when) == ("ann", "cli", 1, found.content[31:51])
    assert agents.record().state == "exited"
    assert answer.text == "green"


def test_a_choice_is_an_answer_with_its_number(agents_of: AgentsOf, store: Store) -> None:
    agents = agents_of([QUESTION, say("Done.")])
    launch(agents, ASKING)
    agents.attempt("solo")

    store.answer("solo", choice=2, by="ann")
    agents.attempt("solo")

    assert ' choice="2">\nblue\n' in result(agents).content


def test_a_long_answer_is_a_descriptor(agents_of: AgentsOf, store: Store) -> None:
    agents = agents_of([QUESTION, say("Done.")])
    launch(agents, ASKING, "read_fd", file_descriptor=SMALL)
    agents.attempt("solo")

    store.answer("solo", "much\n" * 100, by="ann")
    agents.attempt("solo")

    assert "<person_answer" in result(agents).content
    assert '<fd_result fd="fd:1"' in result(agents).content
    assert store.process("solo").read("fd:1", read_all=True).text == "much\n" * 100


def test_a_call_that_wants_approval_runs_after_the_yes(agents_of: AgentsOf, store: Store) -> None:
    agents = agents_of([call("echo", words="deploy", id="toolu_1"), say("Done.")])
    launch(agents, APPROVING)

    assert agents.attempt("solo") == "waiting"
    [question] = store.questions()
    before = list(ran)
    store.answer("solo", approve=True, by="ann", door="inspector")
    agents.attempt("solo")

    assert (question.kind, question.tool, question.arguments) == ("approval", "echo", {"words": "deploy"})
    assert (before, ran) == ([], ["deploy"])
    assert result(agents).content == "you said deploy"
    [said] = result(agents).facts.people
    assert (said.who, said.door, said.approved, said.tool) == ("ann", "inspector", True, "echo")


def test_a_call_that_is_denied_never_runs_and_says_why(agents_of: AgentsOf, store: Store) -> None:
    agents = agents_of([call("echo", words="deploy", id="toolu_1"), say("Done.")])
    launch(agents, APPROVING)
    agents.attempt("solo")

    store.answer("solo", approve=False, reason="Not on a Friday.", by="ann")
    agents.attempt("solo")

    assert ran == []
    assert result(agents).is_error
    assert result(agents).content.endswith(
        'approved="false">\nThe call was not run: Not on a Friday.\n</person_answer>'
    )
    assert agents.record().state == "exited"


def test_a_person_may_change_the_arguments_which_the_model_is_told(agents_of: AgentsOf, store: Store) -> None:
    agents = agents_of([call("echo", words="deploy all", id="toolu_1"), say("Done.")])
    launch(agents, APPROVING)
    agents.attempt("solo")

    store.answer("solo", approve=True, arguments={"words": "deploy one"}, by="ann")
    agents.attempt("solo")

    assert ran == ["deploy one"]
    assert 'changed="true">\nThe arguments of echo were changed to: {"words":"deploy one"}\n' in (
        result(agents).content
    )
    assert result(agents).content.endswith("\nyou said deploy one")
    assert result(agents).facts.people[0].changed


def test_changed_arguments_that_do_not_fit_are_an_error_for_the_model(
    agents_of: AgentsOf, store: Store
) -> None:
    agents = agents_of([call("echo", words="deploy", id="toolu_1"), say("Done.")])
    launch(agents, APPROVING)
    agents.attempt("solo")

    store.answer("solo", approve=True, arguments={"wrong": 1}, by="ann")
    agents.attempt("solo")

    assert ran == []
    assert result(agents).is_error
    assert "wrong" in result(agents).content
    assert result(agents).content.startswith('<person_answer who="ann"')
    [said] = result(agents).facts.people
    assert (said.who, said.approved, said.changed) == ("ann", True, True)


def test_the_record_says_who_approved_a_call_whose_worker_died(agents_of: AgentsOf, store: Store) -> None:
    agents = agents_of([call("echo", words="deploy all", id="toolu_1"), say("Done.")])
    launch(agents, APPROVING, limits=Limits(max_losses=100))
    agents.attempt("solo")
    store.answer("solo", approve=True, arguments={"words": "deploy one"}, by="ann")

    for requests in range(60):
        with suppress(Crashed), CrashingStore(store.url, requests) as crashing:
            agents.attempt("solo", crashing)
        if agents.record().state in ENDED:
            break
        agents.lose("solo")

    assert ran == []  # it died between the note that the call has begun and the call
    assert 'type="unknown_outcome"' in result(agents).content
    assert "The arguments of echo were changed to: " in result(agents).content
    assert [(each.who, each.approved) for each in result(agents).facts.people] == [("ann", True)]


def test_calls_of_one_turn_are_asked_about_together_and_the_others_run(
    agents_of: AgentsOf, store: Store
) -> None:
    first = turn(
        call("lines", count=2, id="toolu_0"),
        call("echo", words="a", id="toolu_1"),
        call("echo", words="b", id="toolu_2"),
        QUESTION,
    )
    agents = agents_of([first, say("Done.")])
    launch(agents, PeopleSection(ask=True, approve=("echo",)))

    assert agents.attempt("solo") == "waiting"
    assert [each.call for each in store.questions()] == [
        *("turn1:toolu_1", "turn1:toolu_2", "turn1:toolu_ask"),
    ]
    assert ran == ["lines 2"]
    assert [each.call for each in agents.results()] == ["toolu_0"]

    store.answer("solo", question=2, approve=True)
    assert agents.attempt("solo") == "waiting"
    assert ran == ["lines 2", "b"]
    store.answer("solo", question=1, approve=False)
    store.answer("solo", "red", question=3)
    assert agents.attempt("solo") == "ended"

    assert ran == ["lines 2", "b"]
    assert [(each.call, each.is_error) for each in agents.results()] == [
        *(("toolu_0", False), ("toolu_2", False), ("toolu_1", True), ("toolu_ask", False)),
    ]


def test_references_are_frozen_when_a_person_is_asked(agents_of: AgentsOf, store: Store) -> None:
    agents = agents_of([call("echo", words="deploy {{name:plan}}", id="toolu_1"), say("Done.")])
    launch(agents, APPROVING, "read_fd")
    proc = store.process("solo")
    proc.put("plan", "plan A with {{name:other}}")
    agents.attempt("solo")

    [question] = store.questions()
    proc.put("plan", "plan B")
    store.answer("solo", approve=True)
    agents.attempt("solo")

    assert question.arguments == {"words": "deploy plan A with {{name:other}}"}
    assert ran == ["deploy plan A with {{name:other}}"]


@pytest.mark.parametrize("changes", [False, True])
def test_a_descriptor_of_an_approved_call_still_means_the_same_text(
    agents_of: AgentsOf, store: Store, changes: bool
) -> None:
    write = call("fd_to_file", fd="name:plan", file_path="plan.txt", id="toolu_1")
    agents = agents_of([write, say("Done.")])
    launch(agents, APPROVING, "fd_to_file", export_root=".")
    proc = store.process("solo")
    proc.put("plan", "plan A")
    agents.attempt("solo")

    if changes:
        proc.put("plan", "plan B")
    store.answer("solo", approve=True)
    agents.attempt("solo")

    file = agents.folder / "plan.txt"
    assert result(agents).is_error == changes
    if changes:
        assert "name:plan means another text than the one that a person approved" in result(agents).content
        assert not file.exists()
    else:
        assert file.read_text() == "plan A"


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (call("echo", wrong=1, id="toolu_1"), "wrong"),
        (call("echo", words="{{fd:9}}", id="toolu_1"), "fd:9 does not exist"),
        (call("fd_to_file", fd="fd:9", file_path="x", id="toolu_1"), "fd:9 does not exist"),
        (call("ask_person", question=" ", id="toolu_1"), "must say what"),
        (call("ask_person", question="This?", fd="fd:9", id="toolu_1"), "fd:9 does not exist"),
    ],
)
def test_nobody_is_asked_about_a_call_that_cannot_run(
    agents_of: AgentsOf, store: Store, made: Turn, problem: str
) -> None:
    agents = agents_of([made, say("Done.")])
    launch(agents, PeopleSection(ask=True, approve=("*",)), "read_fd", "fd_to_file", export_root=".")

    assert agents.attempt("solo") == "ended"

    assert result(agents).is_error
    assert problem in result(agents).content


def test_a_tool_whose_schema_has_changed_is_not_run(
    agents_of: AgentsOf, store: Store, execute: Execute
) -> None:
    agents = agents_of([call("echo", words="deploy", id="toolu_1"), say("Done.")])
    launch(agents, APPROVING)
    agents.attempt("solo")
    key = "fdstore:{solo}:solo:questions"
    stored = execute("HGET", key, "1").decode()
    store.answer("solo", approve=True)

    before, _, after = stored.partition('"schema":"')
    execute("HSET", key, "1", f'{before}"schema":"{"0" * 16}{after[16:]}')
    agents.attempt("solo")

    assert ran == []
    assert "echo has changed since a person approved this call" in result(agents).content
    assert [each.approved for each in result(agents).facts.people] == [True]


@pytest.mark.parametrize("on_timeout", ["deny", "fail"])
def test_what_nobody_answers_in_time_is_denied_or_ends_the_agent(
    agents_of: AgentsOf, store: Store, execute: Execute, on_timeout: str
) -> None:
    agents = agents_of([turn(QUESTION, call("echo", words="x", id="toolu_1")), say("Done.")])
    people = PeopleSection(ask=True, approve=("echo",), timeout="90s", on_timeout=on_timeout)  # type: ignore[arg-type]
    launch(agents, people)
    agents.attempt("solo")

    for number in (1, 2):
        execute("HSET", "fdstore:{solo}:solo:questions", f"{number}/until", "1")
    execute("ZADD", "fdstore:{solo}:leases", 1, "solo")
    assert store.run(leases.check_overdue(store.process("solo").handle.keys)).decision == "wake"
    assert agents.attempt("solo") == "ended"

    assert ran == []
    record = agents.record()
    if on_timeout == "fail":
        assert (record.state, record.reason) == (
            "failed",
            "no_answer: nobody answered question 1 within 90 s",
        )
    else:
        assert record.state == "exited"
        contents = [each.content for each in agents.results()]
        assert all(each.is_error for each in agents.results())
        assert "Nobody answered within 1 min; go on without an answer" in contents[0]
        assert "The call was not run: Nobody answered within 1 min" in contents[1]
    assert store.questions() == []


def test_a_killed_agent_runs_nothing_that_is_approved_later(agents_of: AgentsOf, store: Store) -> None:
    agents = agents_of([call("echo", words="deploy", id="toolu_1"), say("Done.")])
    launch(agents, APPROVING)
    agents.attempt("solo")

    store.run(processes.cancel("fdstore", "solo"))

    assert store.questions() == []
    assert agents.attempt("solo") == "not ready"
    assert ran == []


def test_an_agent_that_runs_in_its_caller_waits_there(agents_of: AgentsOf, store: Store) -> None:
    agents = agents_of([call("echo", words="deploy", id="toolu_1"), say("Done.")])
    launch(agents, APPROVING)

    class Answering(Store):
        def run(self, operation: Any) -> Any:
            found = super().run(operation)
            if getattr(operation, "__name__", "") == "any_settled" and not found:
                store.answer("solo", approve=True)
            return found

    with Answering(Runner(store.url), "fdstore", store.url) as here:
        assert agents.attempt("solo", here, wait_here=True) == "ended"

    assert ran == ["deploy"]


def script() -> list[Turn]:
    """A conversation with a question, two approvals beside a call that needs none, a no and an edit."""
    first = turn(call("echo", words="a", id="toolu_a"), call("lines", count=2, id="toolu_lines"), QUESTION)
    second = turn(call("echo", words="b", id="toolu_b"), call("echo", words="c", id="toolu_c"))
    return [first, second, say("Done.")]


def answer_all(store: Store) -> bool:
    """Answer as a person: yes to a, no to b, c with other arguments. Return whether there was a question."""
    asked = store.questions()
    for each in asked:
        if each.kind == "question":
            store.answer("solo", "red", question=each.number, by="ann")
        elif each.arguments["words"] == "b":
            store.answer("solo", question=each.number, approve=False, reason="No.", by="ann")
        else:
            changed = {"words": "d"} if each.arguments["words"] == "c" else None
            store.answer("solo", question=each.number, approve=True, arguments=changed, by="ann")
    return bool(asked)


def run_to_its_end(agents: Agents, store: Store, crashing: CrashingStore | None = None) -> bool:
    """Run the agent, and answer what it asks. Return whether it crashed before its end."""
    try:
        while (state := agents.record().state) not in ENDED:
            if state == "ready":
                agents.attempt("solo", crashing)
            elif not answer_all(store):
                return True
    except Crashed:
        return True
    return False


def launch_asking(agents: Agents) -> None:
    launch(agents, PeopleSection(ask=True, approve=("echo",)))


@pytest.mark.thorough("a fault at every request")
def test_wherever_its_worker_dies_what_was_approved_runs_once_and_what_was_denied_never(
    agents_of: AgentsOf, store: Store, execute: Execute, redis_url: str
) -> None:
    agents = agents_of(lambda request: script()[request.turn_number])
    launch_asking(agents)
    assert not run_to_its_end(agents, store)
    expected = [(each.call, each.is_error, ran) for each in agents.results()]
    assert sorted(ran) == ["a", "d", "lines 2"]

    crashes = 0
    for requests in itertools.count():
        execute("FLUSHALL")
        ran.clear()
        launch_asking(agents)
        with CrashingStore(redis_url, requests) as crashing:
            crashed = run_to_its_end(agents, store, crashing)
        check_keys(Stored(execute))
        if not crashed:
            break
        crashes += 1
        if agents.record().state not in ENDED:
            agents.lose("solo")
            assert not run_to_its_end(agents, store)

        assert agents.record().state == "exited"
        asked = execute("HGET", "fdstore:{solo}:solo:questions", "next")
        assert asked == b"5", f"after a crash before request {requests}"
        assert ran.count("a") <= 1
        assert ran.count("d") <= 1
        assert not {"b", "c"} & set(ran)
        results = {each.call: each for each in agents.results()}
        assert len(agents.results()) == len(expected)
        for words, id_ in (("a", "toolu_a"), ("d", "toolu_c")):
            interrupted = "unknown_outcome" in str(results[id_].content)
            assert (words in ran) or interrupted
            assert interrupted or not results[id_].is_error
        assert results["toolu_b"].is_error
        assert "red" in str(results["toolu_ask"].content)
    assert crashes > 20


def test_the_time_of_an_agent_does_not_run_while_it_waits_for_a_person(
    agents_of: AgentsOf, store: Store, execute: Execute
) -> None:
    agents = agents_of([QUESTION, say("Done.")])
    launch(agents, ASKING, limits=Limits(wall_seconds=3600))
    agents.attempt("solo")

    day_ago = float(execute("TIME")[0]) - 86_400
    execute("HSET", "fdstore:{solo}:solo", "started_at", day_ago, "asked_at", day_ago + 10)
    store.answer("solo", "red")
    agents.attempt("solo")

    assert agents.record().state == "exited"


def test_nor_does_that_of_an_agent_which_runs_in_its_caller(agents_of: AgentsOf, store: Store) -> None:
    wall_seconds = 2
    agents = agents_of([QUESTION, say("Done.")])
    launch(agents, ASKING, limits=Limits(wall_seconds=wall_seconds))

    class Slow(Store):
        """Its person answers when the time of the agent would be over."""

        until = float("inf")

        def run(self, operation: Any) -> Any:
            if getattr(operation, "__name__", "") == "any_settled":
                self.until = min(self.until, time.monotonic() + wall_seconds)
                if time.monotonic() > self.until and store.questions():
                    store.answer("solo", "red")
            return super().run(operation)

    with Slow(Runner(store.url), "fdstore", store.url) as here:
        assert agents.attempt("solo", here, wait_here=True) == "ended"

    assert agents.record().state == "exited"


@pytest.mark.parametrize("count", [20, pytest.param(1000, marks=pytest.mark.long)])
def test_waiting_agents_hold_no_slot_and_cost_little(
    agents_of: AgentsOf, store: Store, execute: Execute, count: int
) -> None:
    agents = agents_of(lambda request: QUESTION)
    for name in [f"waiting-{number:03}" for number in range(count)]:
        program = Program(name="solo", model="any", tools=("ask_person",), people=ASKING)
        launch_root(store, Bundle(root="solo", programs={"solo": program}), "Choose a colour.", name)
        assert agents.attempt(name) == "waiting"

    sizes: dict[str, int] = {}
    for key in execute("KEYS", "fdstore:{waiting-*"):
        if execute("TTL", key) >= 0:
            continue  # a reply, in case it was lost: gone before a person has read the question
        tree = key.decode().partition("{")[2].partition("}")[0]
        sizes[tree] = sizes.get(tree, 0) + execute("MEMORY", "USAGE", key, "SAMPLES", 0)
    each = sum(sizes.values()) / len(sizes)
    print(f"{len(sizes)} agents: {each:.0f} bytes each, most {max(sizes.values())}")

    assert len(sizes) == len(store.questions()) == count
    assert each <= 6 * 1024, sizes
    if b"redis_version:6." not in execute("INFO", "server"):  # there an allocation may get 400 bytes more
        assert max(sizes.values()) <= 6 * 1024, sizes
    leases_of = [execute("ZCARD", f"fdstore:{{{tree}}}:leases") for tree in sizes]
    assert leases_of == [1] * count  # until the time of its question is over
    members = [member for tree in sizes for member in store.tree(tree).members]
    assert {(member.state, member.worker) for member in members} == {("waiting", None)}
    for tree in sizes:
        store.drop_tree(tree, kill=True)


def test_an_answer_after_a_crash_of_worker_and_redis_is_the_same(tmp_path: Path) -> None:
    made = turn(QUESTION, call("echo", words="deploy", id="toolu_1"))
    with (
        PrivateServer({"appendonly": "yes", "appendfsync": "always"}, port=True) as server,
        fdstore.connect(server.url) as store,
        running(store, [made, say("Done.")], tmp_path) as agents,
    ):
        launch(agents, PeopleSection(ask=True, approve=("echo",)))
        assert agents.attempt("solo") == "waiting"
        before = store.questions()

        server.kill()
        server.restart()
        assert store.questions() == before
        store.answer("solo", question=2, approve=True, by="ann")
        server.kill()
        server.restart()
        assert agents.attempt("solo") == "waiting"
        store.answer("solo", "red", question=1, by="ann")
        assert agents.attempt("solo") == "ended"

        assert ran == ["deploy"]
        assert [each.is_error for each in agents.results()] == [False, False]
        assert agents.record().state == "exited"


@pytest.mark.parametrize("number", ["1", "2"])
def test_an_answer_counts_for_the_call_that_a_person_was_shown(
    agents_of: AgentsOf, store: Store, execute: Execute, number: str
) -> None:
    calls = [QUESTION, call("echo", words="one", id="toolu_1"), call("echo", words="two", id="toolu_2")]
    agents = agents_of([turn(*calls), say("Done.")])
    launch(agents, PeopleSection(ask=True, approve=("echo",)))
    agents.attempt("solo")
    asked = [(each.number, each.call) for each in store.questions()]
    for of_question, given in ((1, {"text": "red"}), (2, {"approve": True})):
        store.answer("solo", question=of_question, by="ann", **given)

    execute("HSET", "fdstore:{solo}:solo:questions", "call/turn1:toolu_2/approval", number)
    agents.attempt("solo")
    execute("HSET", "fdstore:{solo}:solo:questions", "call/turn1:toolu_2/approval", "3")

    assert asked == [(1, "turn1:toolu_ask"), (2, "turn1:toolu_1"), (3, "turn1:toolu_2")]
    assert ran.count("two") == 0
    assert ran.count("one") <= 1
    assert result(agents).is_error
    assert "another call asked it; the record is damaged" in result(agents).content
