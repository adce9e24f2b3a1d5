"""Real agents of the OpenAI Agents SDK, with its own scripted model, which keeps what it was shown."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    RunConfig,
    Runner,
    SQLiteSession,
    ToolOutputImage,
    ToolOutputText,
    function_tool,
    set_tracing_disabled,
)
from agents.mcp import MCPServer
from agents.testing import ScriptedModel, assistant_message, function_call
from pydantic import BaseModel

from fdstore.client import Store
from fdstore.integrations.openai_agents import FdstoreTools

set_tracing_disabled(True)


class Count(BaseModel):
    lines: int


def ask(name: str, call_id: str, arguments: str = "{}") -> Any:
    return [function_call(name, arguments, call_id=call_id)]


def scripted(*turns: Any) -> ScriptedModel:
    return ScriptedModel([*turns, [assistant_message("Done.")]])


def run(
    ours: FdstoreTools, tools: list[Any], model: ScriptedModel, *, given: Any = "Go.", **options: Any
) -> Any:
    """Run an agent to its end, and return what its model was shown last."""
    agent = Agent("triage", instructions=ours.instructions, tools=ours.wrap(tools), model=model)
    options.setdefault("run_config", ours.run_config("chat-7"))
    asyncio.run(Runner.run(agent, given, **options))
    return model.calls[-1].input


def outputs(items: Any) -> list[Any]:
    return [item["output"] for item in items if item.get("type") == "function_call_output"]


@pytest.fixture
def read_log(read_log: Callable[[], str]) -> FunctionTool:
    return function_tool(read_log)


def test_a_session_keeps_what_the_model_saw_and_goes_on_with_it(
    store: Store, read_log: FunctionTool, log_text: str
) -> None:
    ours, session = FdstoreTools(store), SQLiteSession("chat-7")
    run(ours, [read_log], scripted(ask("read_log", "call_1")), session=session)

    shown = run(
        ours,
        [read_log],
        scripted(ask("read_fd", "call_2", '{"fd": "fd:1#L9"}')),
        session=session,
        run_config=RunConfig(group_id="chat-7", session_input_callback=lambda history, new: [*history, *new]),
    )

    assert "line 2500 of" not in str(asyncio.run(session.get_items()))
    assert "\nline 9 of the build\n" in outputs(shown)[1]


def test_long_input_is_stored_once_though_the_session_keeps_it(store: Store, log_text: str) -> None:
    ours, model = FdstoreTools(store), scripted(ask("list_fds", "call_1"), ask("list_fds", "call_2"))
    given = [
        {"role": "user", "content": log_text},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "short"}, {"type": "input_text", "text": "x" * 9000}],
        },
    ]

    shown = run(ours, [], model, given=given)

    assert shown[0]["content"].startswith('<fd_result fd="fd:1" ')
    assert 'source="user_input"' in shown[0]["content"]
    short, long = shown[1]["content"]
    assert short["text"] == "short"
    assert long["text"].startswith('<fd_result fd="fd:2" ')
    assert [found.fd for found in store.process("chat-7").list()] == ["fd:1", "fd:2"]


def test_images_stay_beside_texts_that_are_stored(store: Store, log_text: str, png: bytes) -> None:
    url = f"data:image/png;base64,{base64.b64encode(png).decode()}"

    @function_tool
    def look() -> list[Any]:
        """Return a picture and the log."""
        return [
            ToolOutputText(text="short"),
            {"type": "image", "image_url": url},
            ToolOutputText(text=log_text),
        ]

    @function_tool
    def photograph() -> Any:
        """Return a picture on another server."""
        return ToolOutputImage(image_url="https://example.org/a.png")

    model = scripted(ask("look", "call_1"), ask("photograph", "call_2"))

    (short, name, image, stub), [photograph] = outputs(run(FdstoreTools(store), [look, photograph], model))

    assert short["text"] == "short"
    assert name["text"].startswith('<fd_result fd="fd:1" ')
    assert image == {"type": "input_image", "image_url": url}
    assert stub["text"].startswith('<fd_result fd="fd:2" ')
    assert photograph == {"type": "input_image", "image_url": "https://example.org/a.png"}
    assert store.process("chat-7").read_bytes("fd:1") == png


def test_errors_and_short_results_stay_as_they_are(store: Store, log_text: str) -> None:
    @function_tool
    def fail() -> str:
        """Fail."""
        raise ValueError("exit code 2")

    @function_tool(failure_error_function=lambda context, error: f"It failed: {error}")
    def fail_long() -> str:
        """Fail."""
        raise ValueError("exit code 2\n" + log_text)

    @function_tool
    def count() -> Any:
        """Count."""
        return {"lines": 3}

    @function_tool
    def model_count() -> Count:
        """Count."""
        return Count(lines=3)

    model = scripted(
        *(ask(name, f"call_{name}") for name in ("fail", "fail_long", "count", "model_count")),
        ask("read_fd", "call_2", '{"fd": "fd:9"}'),
        ask("read_fd", "call_3", "no JSON"),
    )

    failed, long, counted, typed, refused, invalid = outputs(
        run(FdstoreTools(store), [fail, fail_long, count, model_count], model)
    )

    assert failed.startswith("An error occurred while running the tool")
    assert long.startswith("<fd_result ")
    assert "It failed: exit code 2" in long
    assert counted == "{'lines': 3}"
    assert typed == "lines=3"
    assert refused.startswith('<fd_error type="not_found"')
    assert "Invalid JSON" in invalid


class LogServer(MCPServer):
    """An MCP server in this program, with one tool."""

    name = "logs"

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    async def connect(self) -> None: ...
    async def cleanup(self) -> None: ...
    async def list_tools(self, *args: Any) -> Any:
        from mcp.types import Tool

        return [
            Tool.model_validate({"name": "fetch_log", "inputSchema": {"type": "object", "properties": {}}})
        ]

    async def call_tool(self, *args: Any, **options: Any) -> Any:
        from mcp.types import CallToolResult

        return CallToolResult.model_validate({"content": [{"type": "text", "text": self.text}]})

    async def list_prompts(self) -> Any: ...
    async def get_prompt(self, *args: Any) -> Any: ...


def test_results_that_no_wrapped_tool_returned_are_shown_as_descriptors_too(
    store: Store, read_log: FunctionTool, log_text: str
) -> None:
    """Of MCP servers, and of tools whose approval depends on their arguments."""

    async def approve(*args: Any) -> bool:
        return False

    read_log.needs_approval = approve
    ours = FdstoreTools(store)
    model = scripted(ask("fetch_log", "call_1"), ask("read_log", "call_2"))
    agent = Agent("triage", tools=ours.wrap([read_log]), mcp_servers=[LogServer(log_text)], model=model)

    asyncio.run(Runner.run(agent, "Go.", run_config=ours.run_config("chat-7")))

    (fetched,), read = outputs(model.calls[-1].input)
    assert fetched["text"].startswith('<fd_result fd="fd:1" ')
    assert read.startswith('<fd_result fd="fd:2" ')
    assert len(store.process("chat-7").list()) == 2


def test_a_conversation_that_the_server_keeps_is_sent_each_text_once(
    store: Store, read_log: FunctionTool, log_text: str
) -> None:
    ours = FdstoreTools(store)
    model = scripted(ask("read_log", "call_1"), ask("list_fds", "call_2"))

    run(ours, [read_log], model, given=log_text, conversation_id="conv_1")

    (question,), (read,), (listed,) = [call.input for call in model.calls]
    assert question["content"].startswith('<fd_result fd="fd:1" ')
    assert read["output"].startswith('<fd_result fd="fd:2" ')
    assert listed["output"].startswith("<fd_list ")


def test_a_filter_of_the_user_runs_first(store: Store, log_text: str) -> None:
    def doubled(data: Any) -> Any:
        data.model_data.input = [*data.model_data.input, {"role": "user", "content": log_text}]
        return data.model_data

    ours = FdstoreTools(store)
    config = ours.run_config("chat-7", RunConfig(call_model_input_filter=doubled, workflow_name="triage"))

    shown = run(ours, [], scripted(), run_config=config)

    assert config.workflow_name == "triage"
    assert shown[1]["content"].startswith("<fd_result ")


def test_a_repeated_call_is_stored_once_and_each_thread_has_a_process_of_its_own(
    store: Store, read_log: FunctionTool
) -> None:
    ours = FdstoreTools(store)
    for thread in ("chat-7", "Chat 7"):
        run(
            ours,
            [read_log],
            scripted(ask("read_log", "call_1"), ask("read_log", "call_1")),
            run_config=ours.run_config(thread),
        )

    processes = {tree.id for tree in store.trees()}

    assert len(processes) == 2
    assert all([found.fd for found in store.process(name).list()] == ["fd:1"] for name in processes)


@pytest.mark.parametrize("behavior", ["stop_on_first_tool", {"stop_at_tool_names": ["read_log"]}])
def test_the_caller_gets_what_the_last_tool_returned_and_the_model_its_descriptor(
    store: Store, read_log: FunctionTool, log_text: str, behavior: Any
) -> None:
    ours, model = FdstoreTools(store), scripted(ask("read_log", "call_1"))
    agent = Agent("triage", tools=ours.wrap([read_log]), model=model, tool_use_behavior=behavior)

    async def run_twice() -> Any:
        ended = await Runner.run(agent, "Go.", run_config=ours.run_config("chat-7"))
        items = [*ended.to_input_list(), {"role": "user", "content": "And now?"}]
        await Runner.run(agent, items, run_config=ours.run_config("chat-7"))
        return ended.final_output

    assert asyncio.run(run_twice()) == log_text
    [shown] = outputs(model.calls[-1].input)
    assert shown.startswith('<fd_result fd="fd:1" ')
