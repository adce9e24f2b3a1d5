"""Events of Claude Code: the output is found, and the answer has the shape of the tool's output."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.hosts.hooks import claude, codex, gemini
from fdstore.hosts.hooks.host_tool import event_of
from fdstore.hosts.hooks.hosts import read_event
from fdstore.tools.catalogue import BUILT_IN, READING_TOOLS
from tests.hook_events import after_tool

LONG = "x" * 8001
LIMIT = 8000


def updated(tool: str, response: Any, shown: Any = "STUB") -> Any:
    output = claude.output_of(after_tool(tool, response), LIMIT)
    assert output is not None
    answer = output.answer(shown)["hookSpecificOutput"]
    assert answer["hookEventName"] == "PostToolUse"
    return answer["updatedToolOutput"]


def test_an_output_of_bash_keeps_its_shape_but_for_the_pointer_to_a_file() -> None:
    response = {
        "stdout": LONG[:30],
        "stderr": "warning",
        "interrupted": False,
        "isImage": False,
        "persistedOutputPath": "/home/ann/.claude/projects/-src-shop/0ab1/tool-results/b1.txt",
        "persistedOutputSize": 108894,
        "aFieldOfALaterVersion": [1],
    }

    output = claude.output_of(after_tool("Bash", response), LIMIT)

    assert output is not None
    assert output.file == response["persistedOutputPath"]
    assert (output.source, output.session) == ("Bash: make test", "0ab1")
    assert str(output.call_id).startswith("0ab1/toolu_1/")
    assert updated("Bash", response) == {
        "stdout": "STUB",
        "stderr": "warning",
        "interrupted": False,
        "isImage": False,
        "aFieldOfALaterVersion": [1],
    }


@pytest.mark.parametrize(
    ("tool", "response", "expected"),
    [
        ("Grep", {"mode": "content", "content": LONG}, {"mode": "content", "content": "STUB"}),
        ("WebFetch", {"result": LONG, "code": 200}, {"result": "STUB", "code": 200}),
        ("mcp__github__list", LONG, [{"type": "text", "text": "STUB"}]),
        ("mcp__github__list", f'{{"result": "{LONG}"}}', [{"type": "text", "text": "STUB"}]),
    ],
)
def test_other_tools_keep_the_shape_of_their_output(tool: str, response: Any, expected: Any) -> None:
    assert updated(tool, response) == expected


def test_blocks_of_an_mcp_tool_and_of_a_subagent_are_replaced_as_blocks() -> None:
    blocks = [{"type": "text", "text": LONG}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]
    shown = [{"type": "text", "text": "STUB"}, blocks[1]]

    assert updated("mcp__shots__take", blocks, shown) == shown
    assert updated("Task", {"content": blocks, "status": "completed"}, shown) == {
        "content": shown,
        "status": "completed",
    }


def test_blocks_that_are_shown_as_json_stay_blocks() -> None:
    blocks = [{"type": "text", "text": LONG}, {"type": "text", "text": "short"}]

    output = claude.output_of(after_tool("mcp__github__list", json.dumps(blocks)), LIMIT)

    assert output is not None
    assert output.value == blocks


def test_what_claude_code_wrote_to_a_file_is_taken_from_there() -> None:
    pointer = (
        "Error: result (1,994,903 characters) exceeds maximum allowed tokens. Output has been saved to "
        "/home/ann/.claude/projects/p/0ab1/tool-results/mcp-x-1.txt.\n"
        "Format: JSON with schema: {result: string}\nUse jq.\n"
    )

    output = claude.output_of(after_tool("mcp__github__list", pointer), LIMIT)

    assert output is not None
    assert (output.file, output.is_json) == (
        "/home/ann/.claude/projects/p/0ab1/tool-results/mcp-x-1.txt",
        True,
    )


@pytest.mark.parametrize(
    ("tool", "response"),
    [
        ("Bash", {"stdout": "x" * 8000, "stderr": ""}),
        ("Bash", {"stdout": LONG, "isImage": True}),
        ("Bash", LONG),
        ("Bash", {"stdout": [LONG]}),
        ("Read", {"type": "text", "file": {"content": LONG}}),
        ("Edit", {"originalFile": LONG}),
        ("Task", {"content": LONG}),
        ("mcp__plugin_fdstore_fdstore__read_fd", [{"type": "text", "text": LONG}]),
        ("mcp__fdstore__wait", [{"type": "text", "text": LONG}]),
        ("mcp__github__search_fd", [{"type": "text", "text": LONG}]),
        ("mcp__shots__take", [{"type": "image", "data": LONG}]),
        ("mcp__odd__one", {"a": LONG}),
        ("mcp__odd__one", None),
        ("TheirNextTool", {"stdout": LONG}),
    ],
)
def test_what_is_short_or_ours_or_not_understood_stays_as_it_is(tool: str, response: Any) -> None:
    assert claude.output_of(after_tool(tool, response), LIMIT) is None


def test_other_events_stay_as_they_are() -> None:
    response = {"stdout": LONG}

    assert claude.output_of(after_tool("Bash", response, hook_event_name="PreToolUse"), LIMIT) is None
    assert claude.output_of(after_tool("Bash", response, tool_name=7), LIMIT) is None
    assert claude.output_of({}, LIMIT) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("y" * 30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
tools = st.sampled_from(["Bash", "Grep", "Task", "WebFetch", "mcp__x__y", "run_shell_command"])
fields = st.sampled_from(["stdout", "content", "result", "llmContent", "structuredContent", "text", "type"])


@given(
    host=st.sampled_from([claude, codex, gemini]),
    tool=tools | st.text(max_size=5),
    response=json_values | st.dictionaries(fields, json_values, max_size=4),
    extra=st.dictionaries(st.sampled_from(["cwd", "tool_input", "mcp_context", "session_id"]), json_values),
)
def test_no_event_whatever_is_in_it_raises(host: Any, tool: str, response: Any, extra: Any) -> None:
    name = "AfterTool" if host is gemini else "PostToolUse"

    output = host.output_of(after_tool(tool, response, hook_event_name=name, **extra), 20)

    if output is not None:
        assert output.answer("STUB")


def test_blocks_that_are_nested_without_end_stay_as_they_are() -> None:
    blocks: list[Any] = []
    for _ in range(900):
        blocks = [{"type": "text", "text": blocks}]

    assert claude.output_of(after_tool("mcp__x__y", blocks), LIMIT) is None


def test_an_output_that_the_host_cut_within_a_character_is_read_in_both_ways() -> None:
    response = rb'{"stdout": "' + LONG.encode() + rb'\ud83d"}'
    shown = {"stdout": LONG + r"\ud83d"}

    assert read_event(b'{"tool_response": ' + response + b"}") == {"tool_response": shown}
    assert event_of({"tool_response": response.decode()})["tool_response"] == shown


def test_the_arguments_of_the_hook_tool_are_read_as_the_event_they_were() -> None:
    arguments = {
        "tool_name": "Bash",
        "tool_input": '{"command": "ls"}',
        "tool_response": '[{"type": "text"}]',
    }

    assert event_of(arguments)["tool_input"] == {"command": "ls"}
    assert event_of(arguments)["tool_response"] == [{"type": "text"}]
    structured = {"tool_name": "mcp__x__y", "tool_response": '{"result": "a"}'}
    assert event_of(structured) == {"hook_event_name": "PostToolUse", **structured}
    for text in ("[1, 2]", "{no", "[]x", "plain", "[" * 5000):
        assert event_of({"tool_response": text})["tool_response"] == text


def test_the_plugin_allows_its_reading_tools_and_nothing_else() -> None:
    for tool in BUILT_IN:
        name = f"mcp__plugin_fdstore_fdstore__{tool}"
        allowed = claude.permission_of({"hook_event_name": "PreToolUse", "tool_name": name})
        assert (allowed is not None) == (tool in READING_TOOLS)
    for name in ("Bash", "mcp__other__read_fd", "mcp__plugin_fdstore_fdstore__read_fd2", 7):
        assert claude.permission_of({"hook_event_name": "PreToolUse", "tool_name": name}) is None
    assert claude.permission_of(after_tool("mcp__plugin_fdstore_fdstore__read_fd", "x")) is None
    hooks = resources.files("fdstore.hosts.hooks") / "claude_plugin" / "hooks" / "hooks.json"
    [before] = json.loads(hooks.read_text("utf-8"))["hooks"]["PreToolUse"]
    assert before["matcher"] == f"mcp__plugin_fdstore_fdstore__({'|'.join(READING_TOOLS)})"
