"""Real agents of Microsoft Agent Framework, with a scripted chat client that keeps what it was shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agent_framework import (
    Agent,
    Content,
    Message,
    tool,
)

from fdstore.client import Store
from fdstore.integrations.agent_framework import FdstoreProvider
from tests.frameworks.conformance.agent_framework import ScriptedClient


def ask(name: str, call_id: str, **arguments: Any) -> Content:
    return Content.from_function_call(call_id, name, arguments=arguments)


async def messages(
    provider: FdstoreProvider,
    tools: list[Any],
    client: ScriptedClient,
    given: Any = "Go.",
    session: Any = "chat-7",
) -> list[Message]:
    """Run an agent, and return what its model was shown last."""
    agent = Agent(client, "Be brief.", tools=tools, context_providers=[provider])
    await agent.run(given, session=agent.create_session(session_id=session) if session else None)
    return client.requests[-1]


def run(*arguments: Any, **options: Any) -> list[Message]:
    return asyncio.run(messages(*arguments, **options))


def results(shown: list[Message]) -> list[Content]:
    return [content for message in shown for content in message.contents if content.type == "function_result"]


@pytest.fixture
def read_log(read_log: Callable[[], str]) -> Any:
    return tool(approval_mode="never_require")(read_log)


def test_a_long_result_is_shown_as_its_descriptor_and_read_back_exactly(
    store: Store, read_log: Any, log_text: str
) -> None:
    client = ScriptedClient(ask("read_log", "call_1"), ask("read_fd", "call_2", fd="fd:1#L4321"))

    shown = run(FdstoreProvider(store), [read_log], client)

    stub, page = results(shown)
    assert stub.result.startswith('<fd_result fd="fd:1" ')
    assert "\nline 4321 of the build\n" in page.result
    assert "line 2500 of" not in str([message.to_dict() for message in shown])
    assert sorted(each.name for each in client.options["tools"]) == [
        "list_fds",
        "read_fd",
        "read_log",
        "search_fd",
    ]
    assert client.options["instructions"].startswith("Be brief.")
    assert "search_fd" in client.options["instructions"]
    assert store.process("chat-7").read("fd:1", read_all=True).text == log_text


def test_long_input_is_stored_once_and_the_history_keeps_what_was_shown(store: Store, log_text: str) -> None:
    async def converse() -> list[Message]:
        client = ScriptedClient()
        agent = Agent(client, context_providers=[FdstoreProvider(store)])
        session = agent.create_session(session_id="chat-7")
        await agent.run(Message("user", ["Why did it fail?", log_text]), session=session)
        await agent.run("And now?", session=session)
        return client.requests[-1]

    first, *_, last = asyncio.run(converse())

    short, long = first.contents
    assert short.text == "Why did it fail?"
    assert long.text.startswith('<fd_result fd="fd:1" ')
    assert last.text == "And now?"
    assert [found.source for found in store.process("chat-7").list()] == ["user_input"]


def test_short_contents_that_are_long_together_are_stored_as_one(store: Store) -> None:
    half = "a line\n" * 700

    async def converse() -> Message:
        client = ScriptedClient()
        agent = Agent(client, context_providers=[FdstoreProvider(store)])
        session = agent.create_session(session_id="chat-7")
        await agent.run(Message("user", ["Why?", half, half]), session=session)
        return client.requests[-1][0]

    [stub] = asyncio.run(converse()).contents

    assert stub.text.startswith('<fd_result fd="fd:1" ')
    assert store.process("chat-7").read("fd:1", read_all=True).text == f"Why?\n{half}\n{half}"


def test_a_repeated_call_is_stored_once_and_each_session_has_a_process(store: Store, read_log: Any) -> None:
    for session in ("chat-7", "Chat 7", None):
        client = ScriptedClient(ask("read_log", "call_1"), ask("read_log", "call_1"))
        run(FdstoreProvider(store), [read_log], client, session=session)

    processes = [store.process(tree.id) for tree in store.trees()]

    assert len(processes) == 3
    assert all([found.fd for found in process.list()] == ["fd:1"] for process in processes)


def test_an_id_that_one_agent_says_to_the_next_never_means_another_text(store: Store, read_log: Any) -> None:
    """Agents in a sequence have sessions of their own, and hand on what they said."""
    provider = FdstoreProvider(store)
    first = ScriptedClient(ask("read_log", "call_1"), Content.from_text("The log is fd:1."))
    second = ScriptedClient(
        ask("read_log", "call_2"), ask("read_fd", "call_3", fd="fd:1"), ask("read_fd", "call_4", fd="fd:2#L9")
    )

    async def run_both() -> None:
        said = await Agent(first, tools=[read_log], context_providers=[provider]).run("Go.")
        await Agent(second, tools=[read_log], context_providers=[provider]).run(said.messages)

    asyncio.run(run_both())

    stored, refused, page = results(second.requests[-1])[-3:]
    assert stored.result.startswith('<fd_result fd="fd:2" ')
    assert "was given by another process" in refused.result
    assert "\nline 9 of the build\n" in page.result


def test_nothing_is_held_back_of_a_conversation_that_a_service_keeps(store: Store) -> None:
    client = ScriptedClient()

    async def go_on() -> None:
        agent = Agent(client, "Be brief.", context_providers=[FdstoreProvider(store, hold_back=True)])
        await agent.run("Go.", session=agent.get_session("conv_1", session_id="chat-7"))

    asyncio.run(go_on())

    [request] = client.asked
    assert "read_fd" in request.tools
    assert "# Large texts" in request.system
