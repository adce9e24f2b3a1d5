"""The hook and the store in real agents of Haystack, with its own mock model, which keeps its messages."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import pytest
from haystack.components.agents import Agent
from haystack.components.agents.agent import VALID_HOOK_POINTS
from haystack.components.generators.chat import MockChatGenerator
from haystack.core.serialization import allow_deserialization_module
from haystack.dataclasses import ChatMessage, ImageContent, TextContent, ToolCall
from haystack.hooks.tool_result_offloading import OffloadOverChars, ToolResultOffloadHook
from haystack.tools import ComponentTool, Tool

import fdstore
from fdstore.client import Store
from fdstore.errors import NotFound
from fdstore.integrations.haystack import FdstoreHook, FdstoreResultStore


def ask(name: str, call_id: str, **arguments: Any) -> ChatMessage:
    return ChatMessage.from_assistant(tool_calls=[ToolCall(name, arguments, id=call_id)])


def made(function: Callable[[], Any], *, raw: bool = False) -> Tool:
    return Tool(
        name=function.__name__,
        description="A tool.",
        parameters={"type": "object", "properties": {}},
        function=function,
        outputs_to_string={"raw_result": True} if raw else None,
    )


def agent_of(hook: FdstoreHook, tools: list[Tool], *script: ChatMessage, **options: Any) -> Agent:
    return Agent(
        chat_generator=MockChatGenerator([*script, ChatMessage.from_assistant("Done.")]),
        tools=[*tools, *hook.tools],
        system_prompt=hook.instructions,
        hooks={"before_run": [hook], "after_tool": [hook]},
        **options,
    )


def run(
    agent: Agent, *given: str, thread: str | None = "chat-7", awaited: bool = False, before: Any = ()
) -> list[ChatMessage]:
    """Run an agent, and return its messages."""
    messages = [*before, *(ChatMessage.from_user(text) for text in given or ("Go.",))]
    context = {"fdstore_thread": thread} if thread else None
    if awaited:
        return list(asyncio.run(agent.run_async(messages=messages, hook_context=context))["messages"])
    return list(agent.run(messages=messages, hook_context=context)["messages"])


def results(messages: list[ChatMessage]) -> list[Any]:
    return [message.tool_call_result for message in messages if message.tool_call_result]


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_a_long_result_is_shown_as_its_descriptor_and_read_back_exactly(
    store: Store, log_text: str, read_log: Any, awaited: bool
) -> None:
    script = (ask("read_log", "call_1"), ask("read_fd", "call_2", fd="fd:2#L4321"))
    agent = agent_of(FdstoreHook(store), [made(read_log)], *script)

    messages = run(agent, log_text + "What is in line 4321?", awaited=awaited)

    stub, page = results(messages)
    assert stub.result.startswith('<fd_result fd="fd:2" ')
    assert "\nline 4321 of the build\n" in page.result
    assert 'source="user_input"' in messages[1].text
    assert messages[1].meta == {"fdstore": {"process": "chat-7", "fd": "fd:1"}}
    assert "search_fd" in messages[0].text
    assert "line 2500 of" not in str([message.to_dict() for message in messages])
    assert store.process("chat-7").read("fd:2", read_all=True).text == log_text


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_a_result_that_ends_the_run_is_what_the_tool_returned(
    store: Store, log_text: str, read_log: Any, awaited: bool
) -> None:
    hook = FdstoreHook(store)
    # older versions have no hook after a run
    after = {"after_run": [hook]} if "after_run" in VALID_HOOK_POINTS else {}

    def agent(*script: ChatMessage) -> Agent:
        return Agent(
            chat_generator=MockChatGenerator([*script, ChatMessage.from_assistant("Done.")]),
            tools=[made(read_log), *hook.tools],
            hooks={"before_run": [hook], "after_tool": [hook], **after},
            exit_conditions=["read_log", "text"],
        )

    first = run(agent(ask("read_log", "call_1")), awaited=awaited)
    second = run(agent(ask("read_fd", "call_2", fd="fd:1#L7")), "And now?", before=first, awaited=awaited)

    if after:
        assert results(first)[-1].result == log_text
    shown, page = results(second)
    assert shown.result.startswith('<fd_result fd="fd:1" ')
    assert "\nline 7 of the build\n" in page.result


def test_errors_stay_errors_and_short_results_stay_as_they_are(store: Store, log_text: str) -> None:
    def fail() -> str:
        raise ValueError("exit code 2\n" + log_text)

    def count() -> dict[str, int]:
        return {"lines": 3}

    script = (ask("fail", "call_1"), ask("count", "call_2"), ask("read_fd", "call_3", fd="fd:9"))
    agent = agent_of(FdstoreHook(store), [made(fail), made(count)], *script)

    failed, counted, refused = results(run(agent))

    assert failed.error
    assert failed.result.startswith("<fd_result ")
    assert "exit code 2" in failed.result
    assert (counted.error, counted.result) == (False, '{"lines": 3}')
    assert refused.error
    assert refused.result.startswith('<fd_error type="not_found"')


def test_a_thread_goes_on_and_other_runs_have_processes_of_their_own(store: Store, read_log: Any) -> None:
    hook = FdstoreHook(store)
    first = run(agent_of(hook, [made(read_log)], ask("read_log", "call_1"), ask("read_log", "call_1")))
    second = run(agent_of(hook, [], ask("read_fd", "call_2", fd="fd:1#L7")), "And now?", before=first[1:])
    for _ in range(2):
        run(agent_of(hook, [made(read_log)], ask("read_log", "call_1")), thread=None)

    assert "\nline 7 of the build\n" in results(second)[-1].result
    assert len(store.trees()) == 3
    assert all([found.fd for found in store.process(tree.id).list()] == ["fd:1"] for tree in store.trees())


def test_the_store_serves_the_hook_of_haystack(
    store: Store, log_text: str, read_log: Any, png: bytes
) -> None:
    def look() -> list[Any]:
        return [ImageContent(base64.b64encode(png).decode(), mime_type="image/png"), TextContent("x" * 9000)]

    process = store.process("chat-7")
    ours = FdstoreHook(store, process="chat-7")
    offload = ToolResultOffloadHook(
        FdstoreResultStore(process), {"read_log": OffloadOverChars(8000), "look": OffloadOverChars(9)}
    )
    script = [ask("read_log", "call_1"), ask("look", "call_2"), ask("read_fd", "call_3", fd="fd:1#L4321")]
    agent = Agent(
        chat_generator=MockChatGenerator([*script, ChatMessage.from_assistant("Done.")]),
        tools=[made(read_log), made(look, raw=True), *ours.tools],
        hooks={"after_tool": [offload]},
    )

    pointer, looked, page = results(run(agent))

    assert "offloaded to" in pointer.result
    assert "'fd:1'" in pointer.result
    assert "line 1 of the build" in pointer.result
    assert len(pointer.result) < 1000
    assert isinstance(looked.result[0], ImageContent)
    assert "\nline 4321 of the build\n" in page.result
    assert process.stat("fd:1").source == "0_read_log_call_1.txt"
    assert FdstoreResultStore(process).read("fd:1") == log_text


def test_the_store_is_serialized_by_the_name_of_its_process(store: Store) -> None:
    allow_deserialization_module("fdstore.integrations.haystack")
    hook = ToolResultOffloadHook(FdstoreResultStore(store.process("chat-7")), {"*": OffloadOverChars(8000)})

    copied = ToolResultOffloadHook.from_dict(hook.to_dict())

    assert copied.store.process.id == "chat-7"
    assert store.process("chat-7").read(copied.store.write(key="a.txt", content="found")).text == "found"


def test_a_full_store_of_results_lets_go_of_its_oldest(store: Store) -> None:
    process = store.process("full", limits=fdstore.TreeLimits(tree_fds=2))
    results = FdstoreResultStore(process, keep_s=0)

    first, *_, last = [results.write(key=f"{number}.txt", content="x" * number) for number in range(1, 5)]

    assert results.read(last) == "xxxx"
    with pytest.raises(NotFound):
        results.read(first)


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_an_agent_as_a_tool_shares_the_process_that_it_is_given(
    store: Store, read_log: Any, awaited: bool
) -> None:
    """An id that the inner agent returns works in the outer one, and means the same text."""
    hook = FdstoreHook(store)
    generator = MockChatGenerator([ask("read_log", "call_i"), ChatMessage.from_assistant("It is fd:1.")])
    inner = Agent(
        chat_generator=generator,
        tools=[made(read_log), *hook.tools],
        hooks={"before_run": [hook], "after_tool": [hook]},
    )
    asked = ComponentTool(
        inner,
        name="ask_reader",
        description="Ask the reader.",
        inputs_from_state={"hook_context": "hook_context"},
        outputs_to_string={"source": "last_message"},
    )
    question = {"role": "user", "content": [{"text": "Go."}]}
    script = ask("ask_reader", "call_1", messages=[question]), ask("read_log", "call_2")
    outer = agent_of(hook, [asked, made(read_log)], *script, ask("read_fd", "call_3", fd="fd:1#L9"))

    said, stored, page = (each.result for each in results(run(outer, thread=None, awaited=awaited)))

    assert "It is fd:1." in str(said)
    assert stored.startswith('<fd_result fd="fd:2" ')
    assert "\nline 9 of the build\n" in page
    assert len(store.trees()) == 1
