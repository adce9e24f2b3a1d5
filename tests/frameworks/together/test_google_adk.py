"""The plugin in real runners of Google's ADK, with a scripted model that keeps its requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

import fdstore
from fdstore.client import Store
from fdstore.integrations.google_adk import FdstorePlugin
from fdstore.tools.catalogue import READING_TOOLS
from tests.frameworks.conformance.google_adk import ScriptedLlm


def ask(name: str, call_id: str, **arguments: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=arguments, id=call_id))


def scripted(*script: types.Part) -> ScriptedLlm:
    return ScriptedLlm(script=[[part] for part in script])


async def events(
    plugin: FdstorePlugin,
    tools: list[Any],
    model: ScriptedLlm,
    *given: str,
    session: str = "chat-7",
    **options: Any,
) -> list[types.Part]:
    """Run an agent on a message, and return the parts of what its model was shown last."""
    agent = LlmAgent(name="triage", model=model, tools=tools, instruction="Be brief.", **options)
    runner = InMemoryRunner(agent=agent, app_name="app", plugins=[plugin])
    await runner.session_service.create_session(app_name="app", user_id="ada", session_id=session)
    message = types.Content(role="user", parts=[types.Part(text=text) for text in given or ("Go.",)])
    async for _ in runner.run_async(user_id="ada", session_id=session, new_message=message):
        pass
    kept = await runner.session_service.get_session(app_name="app", user_id="ada", session_id=session)
    assert len(str(kept.events)) < 100_000
    return [part for content in model.requests[-1] for part in content.parts or []]


def run(
    plugin: FdstorePlugin, tools: list[Any], model: ScriptedLlm, *given: str, **options: Any
) -> list[Any]:
    return asyncio.run(events(plugin, tools, model, *given, **options))


def responses(parts: list[types.Part]) -> list[Any]:
    return [part.function_response.response for part in parts if part.function_response]


def process_of(store: Store) -> fdstore.Process:
    [tree] = store.trees()
    return store.process(tree.id)


def test_a_long_result_is_shown_as_its_descriptor_and_read_back_exactly(
    store: Store, log_text: str, read_log: Any
) -> None:
    model = scripted(ask("read_log", "call_1"), ask("read_fd", "call_2", fd="fd:1#L4321"))

    stub, page = responses(run(FdstorePlugin(store), [read_log], model))

    assert stub["result"].startswith('<fd_result fd="fd:1" ')
    assert "\nline 4321 of the build\n" in page["result"]
    assert not [request for request in model.requests if "line 2500 of" in str(request)]
    assert model.offered == sorted(["read_log", *READING_TOOLS])
    assert "Be brief." in model.system
    assert "search_fd" in model.system
    process = process_of(store)
    assert process.id.startswith("chat-7-")
    assert process.read("fd:1", read_all=True).text == log_text


def test_long_input_is_stored_before_the_session_keeps_it(store: Store, log_text: str) -> None:
    model = scripted(ask("list_fds", "call_1"))

    short, long, *_ = run(FdstorePlugin(store), [], model, "Why did it fail?", log_text)

    assert short.text == "Why did it fail?"
    assert long.text.startswith('<fd_result fd="fd:1" ')
    assert [found.source for found in process_of(store).list()] == ["user_input"]


def test_short_parts_of_a_message_that_are_long_together_are_stored_as_one(store: Store) -> None:
    half = "a line\n" * 700

    stub, *_ = run(FdstorePlugin(store), [], scripted(ask("list_fds", "call_1")), "Why?", half, half)

    assert stub.text.startswith('<fd_result fd="fd:1" ')
    assert process_of(store).read("fd:1", read_all=True).text == f"Why?\n{half}\n{half}"


def test_each_long_text_of_a_result_is_stored_and_its_shape_stays(store: Store, log_text: str) -> None:
    def run_tests() -> dict[str, Any]:
        """Run the tests."""
        return {"exit_code": 2, "log": log_text, "files": [{"name": "a.py", "text": log_text[:9000]}]}

    def rows() -> list[dict[str, Any]]:
        """Return rows."""
        return [{"row": number, "name": "short"} for number in range(1000)]

    def count() -> dict[str, Any]:
        """Count."""
        return {"lines": 3, "note": "short"}

    model = scripted(ask("run_tests", "call_1"), ask("rows", "call_2"), ask("count", "call_3"))

    tested, rowed, counted = responses(run(FdstorePlugin(store), [run_tests, rows, count], model))

    assert tested["exit_code"] == 2
    assert tested["log"].startswith('<fd_result fd="fd:1" ')
    assert tested["files"][0]["name"] == "a.py"
    assert tested["files"][0]["text"].startswith('<fd_result fd="fd:2" ')
    assert rowed["result"].startswith('<fd_result fd="fd:3" ')
    assert process_of(store).stat("fd:3").lines > 1000
    assert counted == {"lines": 3, "note": "short"}


def test_errors_stay_errors(store: Store, log_text: str) -> None:
    def fail() -> dict[str, Any]:
        """Fail."""
        return {"error": "exit code 2\n" + log_text}

    def crash() -> None:
        """Crash."""
        raise ValueError("no such day")

    model = scripted(ask("fail", "call_1"), ask("read_fd", "call_2", fd="fd:9"))

    failed, refused = responses(run(FdstorePlugin(store), [fail], model))

    assert list(failed) == ["error"]
    assert "exit code 2" in failed["error"]
    assert failed["error"].startswith("<fd_result ")
    assert refused["error"].startswith('<fd_error type="not_found"')
    with pytest.raises(ValueError, match="no such day"):
        run(FdstorePlugin(store), [crash], scripted(ask("crash", "call_1")))


def test_a_repeated_call_is_stored_once_and_each_session_has_a_process(store: Store, read_log: Any) -> None:
    for session in ("chat-7", "chat-8"):
        model = scripted(ask("read_log", "call_1"), ask("read_log", "call_1"))
        run(FdstorePlugin(store), [read_log], model, session=session)

    processes = [store.process(tree.id) for tree in store.trees()]

    assert len(processes) == 2
    assert all([found.fd for found in process.list()] == ["fd:1"] for process in processes)


def test_an_agent_as_a_tool_shares_the_process_of_its_run(store: Store, read_log: Any) -> None:
    """An id that the inner agent returns works in the outer one, and means the same text."""
    inner_model = scripted(ask("read_log", "call_i"), types.Part(text="It is fd:1."))
    inner = LlmAgent(name="reader", model=inner_model, tools=[read_log])
    asks = [
        ask("reader", "call_1", request="Go."),
        ask("read_log", "call_2"),
        ask("read_fd", "call_3", fd="fd:1#L9"),
    ]

    said, stored, page = responses(run(FdstorePlugin(store), [AgentTool(inner), read_log], scripted(*asks)))

    assert said["result"] == "It is fd:1."
    assert stored["result"].startswith('<fd_result fd="fd:2" ')
    assert "\nline 9 of the build\n" in page["result"]
    assert process_of(store).id.startswith("chat-7-")


def test_the_state_of_a_session_names_no_thread(store: Store, log_text: str, read_log: Any) -> None:
    """Clients of the kit's server set the state of sessions that they create."""
    plugin = FdstorePlugin(store)
    run(
        plugin,
        [AgentTool(LlmAgent(name="reader", model=scripted())), read_log],
        scripted(ask("read_log", "c")),
    )
    [alice] = store.trees()
    model = scripted(ask("list_fds", "call_1"))

    async def look(state: dict[str, Any]) -> Any:
        runner = InMemoryRunner(agent=LlmAgent(name="triage", model=model), app_name="app", plugins=[plugin])
        session = await runner.session_service.create_session(app_name="app", user_id="bob", state=state)
        message = types.Content(role="user", parts=[types.Part(text="Go.")])
        async for _ in runner.run_async(user_id="bob", session_id=session.id, new_message=message):
            pass
        return responses([part for content in model.requests[-1] for part in content.parts])

    [listed] = asyncio.run(look({"fdstore_shared": "app/ada/chat-7", "fdstore_thread": "app/ada/chat-7"}))

    assert 'count="0"' in listed["result"]
    assert len(store.process(alice.id).list()) == 1


def test_many_short_texts_beside_a_long_one_are_stored_too(store: Store, log_text: str) -> None:
    def fetch() -> dict[str, Any]:
        """Fetch."""
        blocks = [{"type": "text", "text": f"{number} " + "x" * 4700} for number in range(300)]
        return {"content": [{"type": "text", "text": log_text}, *blocks]}

    [shown] = responses(run(FdstorePlugin(store), [fetch], scripted(ask("fetch", "call_1"))))

    assert shown["result"].startswith('<fd_result fd="fd:2" ')
    assert len(str(shown)) < 10_000
    process = process_of(store)
    assert process.read("fd:1", read_all=True).text == log_text
    whole = process.read("fd:2", read_all=True).text
    assert all(f'"{number} xxx' in whole for number in range(300))
