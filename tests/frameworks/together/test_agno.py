"""Real agents and teams of Agno on a scripted Messages API: what the model was shown is in the requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.exceptions import StopAgentRun
from agno.models.anthropic import Claude
from agno.models.message import Message
from agno.team import Team
from agno.tools import tool
from agno.workflow import Workflow

import fdstore
from fdstore.client import Store
from fdstore.integrations.agno import FdstoreTools
from fdstore.testing import ScriptedModel, call, say
from fdstore.testing.requests import Request

MODES = pytest.mark.parametrize("mode", ["blocking", "blocking stream", "awaited", "awaited stream"])


def claude(model: ScriptedModel) -> Claude:
    return Claude("any", api_key=model.api_key, client_params={"base_url": model.base_url})


def agent_of(ours: FdstoreTools, tools: list[Any], model: ScriptedModel, **options: Any) -> Agent:
    return Agent(
        name="triage",
        model=claude(model),
        tools=[*tools, ours],
        tool_hooks=[ours.store_result],
        pre_hooks=[ours.store_input],
        telemetry=False,
        **options,
    )


def ask(agent: Agent | Team, given: Any = "Go.", mode: str = "blocking", **options: Any) -> str:
    """Run an agent or a team in one of the `MODES`, and return its answer."""

    async def awaited() -> str:
        if mode == "awaited":
            return str((await agent.arun(given, **options)).content)
        events = [event async for event in agent.arun(given, stream=True, **options)]
        return str("".join(str(event.content) for event in events if event.event.endswith("RunContent")))

    if mode.startswith("awaited"):
        return asyncio.run(awaited())
    if mode == "blocking":
        return str(agent.run(given, **options).content)
    events = list(agent.run(given, stream=True, **options))
    return "".join(str(event.content) for event in events if event.event.endswith("RunContent"))


def run(
    ours: FdstoreTools,
    tools: list[Any],
    *script: Any,
    given: Any = "Go.",
    mode: str = "blocking",
    **options: Any,
) -> Request:
    """Run a script to its end with an agent, and return the last request."""
    with ScriptedModel([*script, say("Done.")]) as model:
        assert ask(agent_of(ours, tools, model), given, mode, **options) == "Done."
    return model.requests[-1]


def results(request: Request) -> list[str]:
    """Return the texts of the results of all tools in a request."""
    return [result.text for result in request.tool_results()]


@MODES
def test_a_long_result_is_shown_as_its_descriptor_and_read_back_exactly(
    store: Store, read_log: Callable[[], str], log_text: str, mode: str
) -> None:
    last = run(FdstoreTools(store), [read_log], call("read_log"), call("read_fd", fd="fd:1#L4321"), mode=mode)

    stub, page = results(last)
    assert stub.startswith('<fd_result fd="fd:1" ')
    assert "\nline 4321 of the build\n" in page
    assert "line 2500 of" not in str(last.raw)
    assert "search_fd" in str(last.system)
    [tree] = store.trees()
    assert store.process(tree.id).read("fd:1", read_all=True).text == log_text


def test_a_store_of_asyncio_serves_its_event_loop(redis_url: str, read_log: Callable[[], str]) -> None:
    async def read_log_async() -> str:
        """Return the log of the build."""
        return read_log()

    async def shown() -> list[str]:
        script = [call("read_log"), call("read_log_async"), call("read_fd", fd="fd:2#L2"), say("Done.")]
        async with await fdstore.aio.connect(redis_url) as store:
            with ScriptedModel(script) as model:
                await agent_of(FdstoreTools(store), [read_log, read_log_async], model).arun("Go.")
        return results(model.requests[-1])

    first, second, page = asyncio.run(shown())

    assert first.startswith('<fd_result fd="fd:1" ')
    assert second.startswith('<fd_result fd="fd:2" ')
    assert "\nline 2 of the build\n" in page


def test_tools_that_await_and_other_hooks_run_as_without_us(store: Store, log_text: str) -> None:
    async def read_log() -> str:
        """Return the log of the build."""
        return log_text

    def count_lines() -> int:
        """Count the lines."""
        return 5000

    async def count_calls(function_name: str, function_call: Any, arguments: dict[str, Any]) -> Any:
        seen.append(function_name)
        return await function_call(**arguments)

    seen: list[str] = []
    script = [call("read_log"), call("count_lines"), call("read_fd", fd="fd:1#L9"), say("Done.")]
    with ScriptedModel(script) as model:
        agent = agent_of(FdstoreTools(store), [read_log, count_lines], model)
        agent.tool_hooks = [*(agent.tool_hooks or []), count_calls]
        ask(agent, mode="awaited")

    stub, counted, page = results(model.requests[-1])
    assert stub.startswith('<fd_result fd="fd:1" ')
    assert counted == "5000"
    assert "\nline 9 of the build\n" in page
    assert seen == ["read_log", "count_lines", "read_fd"]


@MODES
def test_the_pieces_that_a_tool_yields_are_stored_as_one_text(store: Store, log_text: str, mode: str) -> None:
    def yield_log() -> Iterator[str]:
        """Yield the lines of the log."""
        yield from log_text.splitlines(keepends=True)

    async def yield_log_async() -> AsyncIterator[str]:
        """Yield the lines of the log."""
        for line in log_text.splitlines(keepends=True):
            yield line

    given = yield_log_async if mode.startswith("awaited") else yield_log
    ours = FdstoreTools(store, process="p")

    [stub] = results(run(ours, [given], call(given.__name__), mode=mode))

    assert stub.startswith('<fd_result fd="fd:1" ')
    assert store.process("p").read("fd:1", read_all=True).text == log_text


def test_a_session_goes_on_with_its_descriptors(store: Store, read_log: Callable[[], str]) -> None:
    ours = FdstoreTools(store)
    run(ours, [read_log], call("read_log"), session_id="chat-7")

    [page] = results(run(FdstoreTools(store), [], call("read_fd", fd="fd:1#L9"), session_id="chat-7"))

    assert "\nline 9 of the build\n" in page
    assert [tree.id for tree in store.trees()] == ["chat-7"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {}),
        ({"user_id": "ann"}, {"user_id": "bob"}),
        ({"session_id": "chat", "user_id": "ann"}, {"session_id": "chat", "user_id": "bob"}),
        ({"session_id": "chat"}, {"session_id": "talk"}),
    ],
    ids=["runs", "users", "users with one session id", "sessions"],
)
def test_runs_of_one_agent_for_others_have_processes_of_their_own(
    store: Store, read_log: Callable[[], str], first: dict[str, str], second: dict[str, str]
) -> None:
    script = [call("read_log"), say("Done."), call("list_fds"), call("read_fd", fd="fd:1"), say("Done.")]
    with ScriptedModel(script) as model:
        agent = agent_of(FdstoreTools(store), [read_log], model)
        ask(agent, **first)
        ask(agent, **second)

    listed, refused = results(model.requests[-1])
    assert 'count="0"' in listed
    assert refused.startswith('<fd_error type="not_found"')


def test_an_agent_that_keeps_its_history_keeps_its_descriptors(
    store: Store, read_log: Callable[[], str]
) -> None:
    """Agno gives all runs of such an agent without a session id one session."""
    script = [call("read_log"), say("Done."), call("read_fd", fd="fd:1#L9"), say("Done.")]
    with ScriptedModel(script) as model:
        agent = agent_of(FdstoreTools(store), [read_log], model, db=InMemoryDb(), add_history_to_context=True)
        ask(agent)
        ask(agent, "And now?")

    stub, page = results(model.requests[-1])
    assert stub.startswith('<fd_result fd="fd:1" ')
    assert "\nline 9 of the build\n" in page


def test_two_users_at_once_read_their_own_texts(store: Store) -> None:
    async def read_notes(run_context: Any) -> str:
        """Return the notes of the user."""
        await both_called.wait()
        return f"a note of {run_context.user_id}\n" * 1000

    async def both() -> None:
        nonlocal both_called
        both_called = asyncio.Barrier(2)
        agent = agent_of(FdstoreTools(store), [read_notes], model)
        await asyncio.gather(*(agent.arun(f"Go, {user}.", user_id=user) for user in ("ann", "bob")))

    def script(request: Request) -> Any:
        done = len(results(request))
        return [call("read_notes"), call("read_fd", fd="fd:1#L9"), say("Done.")][done]

    both_called: asyncio.Barrier
    with ScriptedModel(script) as model:
        asyncio.run(both())

    ended = [request for request in model.requests if len(results(request)) == 2]
    read = {str(request.messages[0]["content"]): results(request)[1] for request in ended}
    assert len(ended) == len(store.trees()) == 2
    for user, other in (("ann", "bob"), ("bob", "ann")):
        [page] = [page for asked, page in read.items() if user in asked]
        assert f"a note of {user}\n" in page
        assert f"a note of {other}\n" not in page


def test_an_id_in_messages_that_are_the_input_is_refused_with_the_reason(
    store: Store, read_log: Callable[[], str]
) -> None:
    history = [Message(role="user", content="Go."), Message(role="assistant", content="It is in fd:1.")]

    stored, refused, page = results(
        run(
            FdstoreTools(store),
            [read_log],
            call("read_log"),
            call("read_fd", fd="fd:1"),
            call("read_fd", fd="fd:2#L7"),
            given=[*history, Message(role="user", content="And now?")],
        )
    )

    assert stored.startswith('<fd_result fd="fd:2" ')
    assert "was given by another process" in refused
    assert "\nline 7 of the build\n" in page


def test_an_id_in_the_history_of_a_session_without_its_process_is_refused(
    store: Store, redis_url: str, read_log: Callable[[], str], log_text: str
) -> None:
    options = {"db": InMemoryDb(), "add_history_to_context": True, "session_id": "chat-7"}
    script = [call("read_log"), say("Done."), call("read_fd", fd="fd:1"), say("Done.")]
    with ScriptedModel(script) as model, fdstore.connect(redis_url, prefix="another") as another:
        ask(agent_of(FdstoreTools(store), [read_log], model, **options))
        ask(agent_of(FdstoreTools(another), [], model, **options), log_text)

    last = model.requests[-1]
    assert '<fd_result fd="fd:2" ' in str(last.messages[-3]["content"])  # the long input
    assert "was given by another process" in results(last)[-1]


@MODES
def test_members_of_a_team_share_the_process_of_its_run(
    store: Store, read_log: Callable[[], str], mode: str
) -> None:
    """A text that a member stores is read by another one and by the leader."""
    ours = FdstoreTools(store)
    reads = [call("read_log"), say("It is fd:1.")]
    counts = [call("read_fd", fd="fd:1#L8"), say("Line 8.")]
    leads = [
        call("delegate_task_to_member", member_id="reader", task="Read."),
        call("delegate_task_to_member", member_id="counter", task="Count."),
        call("read_fd", fd="fd:1#L9"),
        say("Done."),
    ]
    with ScriptedModel(leads) as lead, ScriptedModel(reads) as read, ScriptedModel(counts) as count:
        reader, counter = agent_of(ours, [read_log], read), agent_of(ours, [], count)
        reader.name, counter.name = "reader", "counter"
        team = Team(
            [reader, counter],
            model=claude(lead),
            tools=[ours],
            tool_hooks=[ours.store_result],
            pre_hooks=[ours.store_input],
            telemetry=False,
        )
        ask(team, mode=mode)

    said, counted, page = results(lead.requests[-1])
    assert (said, counted) == ("It is fd:1.", "Line 8.")
    assert "\nline 8 of the build\n" in results(count.requests[-1])[0]
    assert "\nline 9 of the build\n" in page
    assert len(store.trees()) == 1


def test_steps_of_a_workflow_share_the_process_of_its_session(
    store: Store, read_log: Callable[[], str]
) -> None:
    ours = FdstoreTools(store)
    first = [call("read_log"), say("It is fd:1.")]
    second = [call("read_fd", fd="fd:1#L9"), say("Done.")]
    with ScriptedModel(first) as reads, ScriptedModel(second) as counts:
        steps = [agent_of(ours, [read_log], reads), agent_of(ours, [], counts)]
        Workflow(name="triage", steps=steps, telemetry=False).run("Go.", session_id="chat-7")

    assert "\nline 9 of the build\n" in results(counts.requests[-1])[0]
    assert [tree.id for tree in store.trees()] == ["chat-7"]


def test_a_long_answer_of_a_member_is_stored(store: Store, log_text: str) -> None:
    ours = FdstoreTools(store, process="p")
    leads = [call("delegate_task_to_member", member_id="reader", task="Read."), say("Done.")]
    with ScriptedModel(leads) as lead, ScriptedModel([say(log_text)]) as read:
        reader = Agent(name="reader", model=claude(read), telemetry=False)
        team = Team(
            [reader], model=claude(lead), tools=[ours], tool_hooks=[ours.store_result], telemetry=False
        )
        ask(team)

    assert results(lead.requests[-1])[0].startswith('<fd_result fd="fd:1" ')
    assert store.process("p").read("fd:1", read_all=True).text == log_text.strip()


@MODES
def test_a_long_input_is_stored(store: Store, log_text: str, mode: str) -> None:
    last = run(FdstoreTools(store), [], call("read_fd", fd="fd:1#L9"), given=log_text, mode=mode)

    assert '<fd_result fd="fd:1" ' in str(last.messages[0]["content"])
    assert "line 2500 of" not in str(last.raw)
    assert "\nline 9 of the build\n" in results(last)[0]


@MODES
@pytest.mark.parametrize("ends_run", [True, False], ids=["ends the run", "goes on"])
def test_the_caller_gets_what_a_direct_tool_returned(
    store: Store, read_log: Callable[[], str], log_text: str, mode: str, ends_run: bool
) -> None:
    direct = tool(stop_after_tool_call=ends_run, show_result=True)(read_log)

    with ScriptedModel([call("read_log"), say("Done.")]) as model:
        answer = ask(agent_of(FdstoreTools(store), [direct], model), mode=mode)

    assert log_text in answer
    assert len(model.requests) == (1 if ends_run else 2)
    assert store.trees() == []


@MODES
def test_a_tool_that_stops_the_run_stops_it(store: Store, mode: str) -> None:
    def stop() -> str:
        """Stop."""
        raise StopAgentRun("enough")

    with ScriptedModel([call("stop"), say("Done.")]) as model:
        ask(agent_of(FdstoreTools(store), [stop], model), mode=mode)

    assert len(model.requests) == 1


def test_a_result_that_is_cached_is_stored_for_each_session(
    store: Store, read_log: Callable[[], str], tmp_path: Any
) -> None:
    """The cache has the text, not an id of the process that stored it first."""
    cached = tool(cache_results=True, cache_dir=str(tmp_path))(read_log)
    run(FdstoreTools(store), [cached], call("read_log"), session_id="a")

    [_, page] = results(
        run(FdstoreTools(store), [cached], call("read_log"), call("read_fd", fd="fd:1#L9"), session_id="b")
    )

    assert "\nline 9 of the build\n" in page


def test_copies_of_an_agent_store_in_the_process_of_the_session(
    store: Store, read_log: Callable[[], str]
) -> None:
    """Servers copy an agent for each request."""
    with ScriptedModel([call("read_log"), call("read_fd", fd="fd:1#L9"), say("Done.")]) as model:
        agent = agent_of(FdstoreTools(store), [read_log], model)
        ask(agent.deep_copy(), session_id="chat-7")

    assert "\nline 9 of the build\n" in results(model.requests[-1])[-1]
    assert [tree.id for tree in store.trees()] == ["chat-7"]
