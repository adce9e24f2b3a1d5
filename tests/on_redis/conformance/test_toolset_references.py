"""References in both directions: placeholders in arguments and named passages in answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import TextBlock, ToolUseBlock

from fdstore import FDConfig, Toolset
from fdstore.client import Process
from tests.elements import only
from tests.on_redis.conformance.calling import SMALL, echo

# references as arguments


def test_a_placeholder_in_any_string_argument_of_a_users_tool_is_replaced(proc: Process) -> None:
    def show(text: str, parts: list[str], options: dict[str, list[str]]) -> str:
        return json.dumps([text, parts, options])

    tools = Toolset(proc, python=[show])
    proc.create("one\ntwo\nthree\n")
    tools.take_references('<ref id="plan">dig</ref>')

    result = tools.call(
        "show",
        {
            "text": "a {{fd:1#L2}}{{ ref:plan }} b {{fd-1#C1-3}}",
            "parts": ["{{fd:1#P1}}", "{{other}}"],
            "options": {"{{fd:1}}": ["{{ref:plan#L1}}", "{fd:1}"]},
        },
    )

    assert json.loads(result.content) == [
        "a two\ndig b one",
        ["one\ntwo\nthree\n", "{{other}}"],
        {"{{fd:1}}": ["dig", "{fd:1}"]},
    ]


def test_placeholders_are_not_expanded_recursively(proc: Process) -> None:
    tools = Toolset(proc, python=[echo])
    proc.create("{{fd:1}}")

    assert tools.call("echo", {"text": "<{{fd:1}}>"}).content == "<{{fd:1}}>"


def test_the_fd_tools_do_not_expand_placeholders(proc: Process) -> None:
    tools = Toolset(proc, enabled=["write_fd", "search_fd"])
    proc.create("a {{fd:1}} b")

    tools.call("write_fd", {"data": "{{fd:1}}"})

    assert proc.read("fd:2").text == "{{fd:1}}"
    assert only(tools.call("search_fd", {"fd": 1, "pattern": r"\{\{fd:1}}"}).content)["matches"] == "1"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{{fd:9}}", "not_found"),
        ("{{fd:1#L9}}", "invalid_range"),
        ("{{fd:1#L2-1}}", "invalid_argument"),
        ("{{fd:0}}", "invalid_argument"),
        ("{{ref:none}}", "not_found"),
    ],
)
def test_an_unresolvable_placeholder_is_an_error_before_the_call(proc: Process, text: str, kind: str) -> None:
    called: list[str] = []

    def note(text: str) -> str:
        called.append(text)
        return text

    proc.create("text")

    result = Toolset(proc, python=[note]).call("note", {"text": text})

    assert (only(result.content)["type"], result.is_error, called) == (kind, True, [])


@pytest.mark.parametrize(("times", "fits"), [(5, True), (6, False)])
def test_the_total_size_of_expanded_placeholders_is_bounded(proc: Process, times: int, fits: bool) -> None:
    tools = Toolset(proc, config=SMALL, python=[echo])
    proc.create("0123456789")

    result = tools.call("echo", {"text": "{{fd:1}}" * times})

    assert (only(result.content).name == "fd_result") == fits
    if not fits:
        assert only(result.content)["type"] == "too_large"
        assert "more than the limit of 50" in only(result.content).message


def test_arguments_nested_too_deeply_are_refused(proc: Process) -> None:
    def take(value: Any) -> str:
        return "taken"

    deep: Any = "{{fd:1}}"
    for _ in range(2000):
        deep = [deep]

    result = Toolset(proc, python=[take]).call("take", {"value": deep})

    assert only(result.content).message == "the arguments are nested deeper than 100 levels"


def test_braces_are_literal_when_descriptors_are_off(proc: Process) -> None:
    tools = Toolset(proc, enabled=[], python=[echo])

    assert tools.call("echo", {"text": "{{fd:1}}"}).content == "{{fd:1}}"


# references in answers


def test_passages_are_found_in_blocks_of_the_sdk_and_across_them(proc: Process) -> None:
    blocks = [
        {"type": "thinking", "thinking": '<ref id="thought">no</ref>', "signature": ""},
        TextBlock(type="text", text='<ref id="split">begins '),
        TextBlock(type="text", text='and ends</ref><ref id="b">y</ref>'),
        ToolUseBlock(type="tool_use", id="toolu_1", name="x", input={"y": '<ref id="call">no</ref>'}),
    ]

    assert Toolset(proc).take_references(blocks) == ["ref:split", "ref:b"]
    assert proc.read("ref:split").text == "begins and ends"


def test_the_last_passage_of_a_name_wins_and_uses_a_new_number(proc: Process) -> None:
    tools = Toolset(proc)
    tools.take_references('<ref id="plan">first</ref>')
    tools.take_references('<ref id="plan">second</ref>')

    assert [(held.fd, held.chars) for held in proc.list()] == [("ref:plan", 6)]
    assert only(tools.call("read_fd", {"fd": "ref:plan"}).content).body == "second"
    assert proc.create("next").fd == "fd:3"


def test_a_reference_is_accepted_wherever_a_descriptor_is(proc: Process, tmp_path: Path) -> None:
    tools = Toolset(
        proc, enabled=["read_fd", "search_fd", "fd_to_file", "close_fd"], export_root=tmp_path, python=[echo]
    )
    tools.take_references('<ref id="plan">dig\nfill\n</ref>')

    assert only(tools.call("read_fd", {"fd": "ref:plan#L2"}).content).body == "fill\n"
    assert only(tools.call("search_fd", {"fd": "ref:plan", "pattern": "f"}).content).body == "2:fill"
    tools.call("fd_to_file", {"fd": "ref:plan", "file_path": "plan"})
    assert (tmp_path / "plan").read_text() == "dig\nfill\n"
    assert tools.call("echo", {"text": "{{ref:plan#L1}}"}).content == "dig\n"
    assert proc.child(share=["ref:plan"]).read("ref:plan").lines == "1-2"
    assert only(tools.call("close_fd", {"fd": "ref:plan"}).content)["fd"] == "ref:plan"
    assert proc.list() == []


def test_references_are_accepted_only_when_enabled(proc: Process) -> None:
    tools = Toolset(proc, config=FDConfig(enable_references=False))

    assert tools.take_references('<ref id="a">b</ref>') == []
    assert "<ref" not in tools.instructions
