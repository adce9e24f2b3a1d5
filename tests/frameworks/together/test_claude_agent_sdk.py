"""The real Claude Code, as its SDK runs it: what the model would see is asserted on the requests."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, create_sdk_mcp_server, query, tool

import fdstore
from fdstore.client import Store
from fdstore.errors import InvalidArgument
from fdstore.integrations.claude_agent_sdk import FdstoreHooks
from fdstore.testing import ScriptedModel, call, say
from fdstore.testing.requests import Request
from tests.hook_events import after_bash, after_tool

READ_FD = "mcp__fdstore__read_fd"
NUMBERS = "".join(f"{number}\n" for number in range(1, 300_001))

Ask = Callable[..., Request]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Return a function that runs an agent on a script, and returns the last request of its conversation."""
    home = tmp_path / "home"
    home.mkdir()

    def run(ours: FdstoreHooks, *replies: Any, prompt: str = "go", **options: Any) -> Request:
        def script(request: Request) -> Any:
            if "Bash" not in request.tools:
                return say("a title")
            return replies[request.turn_number] if request.turn_number < len(replies) else say("done")

        async def converse(model: ScriptedModel) -> None:
            env = {**model.environ, "HOME": str(home), "IS_SANDBOX": "1"}
            given = ClaudeAgentOptions(
                cwd=tmp_path, env=env, allowed_tools=["Bash", "mcp__logs"], setting_sources=[], **options
            )
            async for _ in query(prompt=await ours.prompt(prompt), options=ours.options(given)):
                pass

        with ScriptedModel(script) as model:
            asyncio.run(converse(model))
        return max(model.requests, key=lambda request: request.turn_number)

    return run


def test_outputs_of_built_in_tools_become_descriptors_that_are_read_back_exactly(
    store: Store, ask: Ask
) -> None:
    last = ask(
        FdstoreHooks(store, "chat-7"),
        call("Bash", command="seq 1 300000", description="count"),
        call(READ_FD, fd="fd:2#L250000"),
        call("Bash", command="seq 1 3", description="count"),
        call(READ_FD, fd="fd:9"),
        prompt=NUMBERS,
    )

    stub, page, short, refused = last.tool_results()
    assert stub.text.startswith('<fd_result fd="fd:2" ')
    assert 'total_lines="300000"' in stub.text
    assert 'source="Bash: seq 1 300000"' in stub.text
    assert "\n250000\n" in page.text
    assert short.text == "1\n2\n3"
    assert refused.is_error
    assert '<fd_error type="not_found"' in refused.text
    assert "123456" not in str(last.messages)
    assert 'source="user_input"' in str(last.messages[0])
    assert READ_FD in last.tools
    assert store.process("chat-7").read("fd:2", read_all=True).text in (NUMBERS, NUMBERS.rstrip("\n"))


def test_results_of_mcp_servers_too_and_images_stay(
    store: Store, ask: Ask, log_text: str, png: bytes
) -> None:
    data = base64.b64encode(png).decode()

    @tool("look", "Look.", {})
    async def look(arguments: Any) -> Any:
        image = {"type": "image", "data": data, "mimeType": "image/png"}
        return {"content": [{"type": "text", "text": log_text[:20000]}, image]}

    @tool("fail", "Fail.", {})
    async def fail(arguments: Any) -> Any:
        return {"content": [{"type": "text", "text": "exit code 2"}], "is_error": True}

    logs = create_sdk_mcp_server("logs", tools=[look, fail])

    last = ask(
        FdstoreHooks(store, "chat-7"),
        call("mcp__logs__look"),
        call("mcp__logs__fail"),
        mcp_servers={"logs": logs},
    )

    looked, failed = last.tool_results()
    assert looked.text.startswith('<fd_result fd="fd:1" ')
    assert data in str(last.messages)
    assert failed.is_error
    assert failed.text.startswith("exit code 2")


def test_a_failing_store_leaves_outputs_as_they_are_and_is_logged_once(
    failing_store: Store, log_text: str, caplog: pytest.LogCaptureFixture
) -> None:
    ours = FdstoreHooks(failing_store)
    event = after_tool("mcp__logs__look", [{"type": "text", "text": log_text}])

    with caplog.at_level(logging.WARNING, "fdstore.integrations"):
        answers = [asyncio.run(ours.after_tool(event, "toolu_1", None)) for _ in range(2)]

    assert answers == [{}, {}]
    assert len(caplog.records) == 1


def test_a_tool_may_have_a_policy_of_its_own(store: Store, log_text: str) -> None:
    config = fdstore.FDConfig(tool={"Bash": fdstore.ToolPolicy(inline="always")})
    event = after_bash(log_text)

    always, usual = (
        asyncio.run(FdstoreHooks(store, config=each).after_tool(event, "toolu_1", None))
        for each in (config, None)
    )

    assert always == {}
    assert "updatedToolOutput" in usual["hookSpecificOutput"]


def test_options_of_the_user_stay(store: Store) -> None:
    async def mine(*args: Any) -> Any:
        return {}

    given = ClaudeAgentOptions(
        hooks={"PostToolUse": [HookMatcher(hooks=[mine])], "Stop": [HookMatcher(hooks=[mine])]},
        mcp_servers={"logs": {"command": "logs"}},
        allowed_tools=["Bash"],
        system_prompt={"type": "preset", "preset": "claude_code", "append": "Be brief."},
    )

    options = FdstoreHooks(store).options(given)

    assert [len(matchers) for matchers in options.hooks.values()] == [2, 1]
    assert list(options.mcp_servers) == ["logs", "fdstore"]
    assert options.allowed_tools[:2] == ["Bash", READ_FD]
    assert options.system_prompt["append"].startswith("Be brief.\n\n")
    assert given.allowed_tools == ["Bash"]
    assert "read_fd" in FdstoreHooks(store).options().system_prompt
    assert (
        FdstoreHooks(store).options(ClaudeAgentOptions(system_prompt="Be brief.")).system_prompt[:9]
        == "Be brief."
    )
    for kept_in_file in ({"mcp_servers": "servers.json"}, {"system_prompt": {"type": "file", "path": "a"}}):
        with pytest.raises(InvalidArgument):
            FdstoreHooks(store).options(ClaudeAgentOptions(**kept_in_file))
