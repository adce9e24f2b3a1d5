"""The person at a host answers questions of agents in forms of the host, which its model never sees."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from mcp import Client
from mcp_types import ElicitRequestFormParams, ElicitResult

from fdstore.client import Process
from fdstore.hosts.mcp import questions
from fdstore.hosts.mcp.questions import answer_in, message_of, schema_of
from fdstore.hosts.mcp.server import build_server
from fdstore.model.people import Question
from fdstore.store.processes import people
from tests.on_redis.hosts.mcp.sessions import ERAS, toolsets_at
from tests.on_redis.inspector.questions import agent_of, ask
from tests.waiting import PATIENCE_S

ALLOWED = frozenset({"read", "answer"})

Fill = Callable[[ElicitRequestFormParams], Awaitable[ElicitResult]]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, execute: Callable[..., Any]) -> Iterator[None]:
    """Look often; and no worker receives the wake-ups."""
    monkeypatch.setattr(questions, "EVERY_S", 0.05)
    yield
    execute("DEL", "fdq:fdstore:queue")


@pytest.fixture
def agents(proc: Process) -> Process:
    """Two agents: one asks which colour, the other whether it may deploy; and one of another tree."""
    proc.create("text\n")
    colour, deploy = agent_of(proc, ("t1", "x", {})), agent_of(proc, ("t1", "deploy", {}))
    ask(proc, colour, text="Which colour?", choices=("red", "blue"))
    ask(proc, deploy, tool="deploy", arguments={"to": "prod"})
    other = proc.store.process("other")
    other.create("text\n")
    ask(other, agent_of(other, ("t1", "x", {})), text="Not for you")
    return proc


def visit(
    redis_url: str,
    fill: Fill | None,
    work: Callable[[Client], Awaitable[None]],
    *,
    era: str = "legacy",
    **more: Any,
) -> None:
    """Connect a host whose person fills in forms with `fill`; None: it shows no forms."""

    async def shown(context: Any, params: Any) -> ElicitResult:
        assert fill is not None
        return await fill(params)

    async def main() -> None:
        toolsets = toolsets_at(redis_url, **{"permissions": ALLOWED, **more})
        callback = None if fill is None else shown
        async with (
            asyncio.timeout(PATIENCE_S),
            Client(build_server(toolsets), mode=era, elicitation_callback=callback) as client,
        ):
            await client.list_tools()
            await work(client)

    asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.02)


def test_a_person_is_shown_the_questions_of_the_tree_one_after_the_other(
    redis_url: str, agents: Process
) -> None:
    seen: list[ElicitRequestFormParams] = []

    async def fill(form: ElicitRequestFormParams) -> ElicitResult:
        seen.append(form)
        if "colour" in form.message:
            return ElicitResult(action="accept", content={"choice": "2. blue"})
        return ElicitResult(action="accept", content={"approve": False, "reason": "not today"})

    async def work(client: Client) -> None:
        await until(lambda: len(agents.store.questions("triage")) == 0)

    visit(redis_url, fill, work)

    assert ["Which colour?" in each.message for each in seen] == [True, False]
    assert '"to": "prod"' in seen[1].message
    answers = [
        agents.store.run(people.asked_question(agents.store.prefix, name, 1)).answer
        for name in ("triage.1", "triage.2")
    ]
    colour, deploy = answers
    assert colour is not None
    assert deploy is not None
    assert (colour.text, colour.choice, colour.door) == ("blue", 2, "mcp")
    assert (deploy.approved, deploy.reason) == (False, "not today")
    assert colour.by.startswith("a person at ")
    assert [each.text for each in agents.store.questions()] == ["Not for you"]


@pytest.mark.parametrize("reply", ["decline", "cancel", "nothing", "wrong"])
def test_a_form_that_is_not_filled_in_answers_nothing_and_is_shown_once(
    redis_url: str, agents: Process, reply: str
) -> None:
    seen: list[str] = []

    async def fill(form: ElicitRequestFormParams) -> ElicitResult:
        seen.append(form.message)
        match reply:
            case "decline" | "cancel":
                return ElicitResult(action=reply)
            case "nothing":
                return ElicitResult(action="accept", content={})
        return ElicitResult(action="accept", content={"approve": "yes", "choice": "3. green", "text": " "})

    async def work(client: Client) -> None:
        await until(lambda: len(seen) == 2)
        ask(agents, agent_of(agents, ("t1", "x", {})), text="And now?")
        await until(lambda: len(seen) == 3)

    visit(redis_url, fill, work)

    assert len(set(seen)) == 3
    assert len(agents.store.questions("triage")) == 3


@pytest.mark.parametrize("era", ERAS)
def test_without_the_permission_or_without_forms_nothing_changes(
    redis_url: str, agents: Process, era: str
) -> None:
    async def fill(form: ElicitRequestFormParams) -> ElicitResult:
        raise AssertionError("nobody may be asked")

    async def work(client: Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert not {name for name in names if "answer" in name or "question" in name or "person" in name}

    visit(redis_url, fill, work, era=era, permissions=frozenset({"read", "write"}))
    visit(redis_url, None, work, era=era)
    if era != "legacy":
        visit(redis_url, fill, work, era=era)

    assert len(agents.store.questions("triage")) == 2


def test_a_call_in_the_protocol_of_2026_is_answered_with_a_form_first(
    redis_url: str, agents: Process
) -> None:
    seen: list[str] = []

    async def fill(form: ElicitRequestFormParams) -> ElicitResult:
        seen.append(form.message)
        if "colour" in form.message:
            return ElicitResult(action="accept", content={"choice": "2. blue"})
        return ElicitResult(action="decline")

    async def work(client: Client) -> None:
        for count in (1, 2, 2):
            result = await client.call_tool("list_fds", {})
            assert "fd:1" in str(result.content)
            assert len(seen) == count

    visit(redis_url, fill, work, era="2026-07-28")

    [left] = agents.store.questions("triage")
    assert left.tool == "deploy"
    asked = agents.store.run(people.asked_question("fdstore", "triage.1", 1))
    assert asked.answer is not None
    assert (asked.answer.text, asked.answer.door) == ("blue", "mcp")


def test_a_question_that_no_form_can_show_does_not_hide_the_next_one(
    redis_url: str, agents: Process, execute: Callable[..., Any]
) -> None:
    key = "fdstore:{triage}:triage.1:questions"
    half = b'"kind":"approval","tool":"x","arguments":{"a":"\\ud83d"}'
    stored = execute("HGET", key, "1")
    execute("HSET", key, "1", stored.replace(b'"kind":"question"', half))
    seen: list[str] = []

    async def fill(form: ElicitRequestFormParams) -> ElicitResult:
        seen.append(form.message)
        return ElicitResult(action="decline")

    async def work(_: Client) -> None:
        await until(lambda: any("deploy" in each for each in seen))

    visit(redis_url, fill, work)


def test_a_form_is_taken_back_when_somebody_else_answers(redis_url: str, agents: Process) -> None:
    seen: list[str] = []

    async def fill(form: ElicitRequestFormParams) -> ElicitResult:
        seen.append(form.message)
        if len(seen) == 1:
            await asyncio.Event().wait()
        return ElicitResult(action="accept", content={"approve": True})

    async def work(client: Client) -> None:
        await until(lambda: len(seen) == 1)
        agents.store.answer("triage.1", "green", by="bob")
        await until(lambda: not agents.store.questions("triage"))

    visit(redis_url, fill, work)

    assert len(seen) == 2


def test_the_words_of_an_agent_cannot_pass_for_those_of_the_form() -> None:
    text = "x\nMay the agent root run rm (fdstore, question 9) with:\n\x1b[31m\u202e"
    asked = Question(
        process="t.1", number=1, kind="question", text=text, choices=("\u202ea",), asked_at=0, until=1
    )

    head, *lines = message_of(asked).split("\n")

    assert head == "The agent t.1 asks (fdstore, question 1):"
    assert all(line.startswith("> ") for line in lines)
    assert not {"\x1b", "\u202e"} & set(message_of(asked) + str(schema_of(asked)))
    assert answer_in(asked, {"choice": "1. \\u{202e}a"}) == {"choice": 1}
