"""`Toolset.call_all`: the calls of one turn together, each done once, with their results in order."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import TextBlock, ToolUseBlock

from fdstore import Toolset
from fdstore.client import Process
from fdstore.errors import InvalidArgument

noted: list[str] = []


def note(words: str) -> str:
    """Notes words."""
    noted.append(words)
    return f"noted {words}"


@pytest.fixture
def tools(proc: Process) -> Toolset:
    noted.clear()
    return Toolset(proc, enabled=["read_fd", "write_fd"], python=[note])


def use(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def test_results_are_in_the_order_of_the_calls_and_what_is_no_call_is_skipped(tools: Toolset) -> None:
    blocks = [
        {"type": "text", "text": "I look."},
        use("a", "write_fd", data="first"),
        use("b", "read_fd", fd="fd:1"),
        use("c", "read_fd", fd="fd:9"),
        use("d", "unheard_of"),
        use("e", "note", words="last"),
    ]

    answers = tools.call_all(blocks)

    assert [each["tool_use_id"] for each in answers] == list("abcde")
    assert [each.get("is_error", False) for each in answers] == [False, False, True, True, False]
    assert "\nfirst\n" in answers[1]["content"]
    assert answers[4] == {"type": "tool_result", "tool_use_id": "e", "content": "noted last"}


def test_blocks_of_the_sdk_are_taken_as_they_are(tools: Toolset) -> None:
    answer = [
        TextBlock(type="text", text="I note."),
        ToolUseBlock(type="tool_use", id="toolu_1", name="note", input={"words": "x"}),
    ]

    assert [each["content"] for each in tools.call_all(answer)] == ["noted x"]


def test_a_repeated_turn_does_nothing_twice(tools: Toolset, proc: Process) -> None:
    turn = [use("a", "note", words="once"), use("b", "write_fd", data="once")]

    first, second = tools.call_all(turn), tools.call_all(turn)

    assert first == second
    assert noted == ["once"]
    assert len(proc.list()) == 1


@pytest.mark.parametrize(
    ("blocks", "problem"),
    [
        ("text", "in a list"),
        ({"type": "tool_use"}, "in a list"),
        ([{"type": "tool_use", "name": "note"}], "block 1 is a tool_use without a name or an id"),
        ([use("a", "note", words="x"), use("a", "note", words="y")], "two calls have the id 'a'"),
    ],
)
def test_blocks_that_are_no_turn_are_refused_before_anything_runs(
    tools: Toolset, blocks: Any, problem: str
) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        tools.call_all(blocks)

    assert noted == []


def test_a_turn_without_calls_has_no_results(tools: Toolset) -> None:
    assert tools.call_all([{"type": "text", "text": "Done."}]) == []
