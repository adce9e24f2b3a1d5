"""The results of single tools: thresholds in characters or tokens, and the parts that are shown."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

import fdstore
from fdstore import FDConfig, ToolPolicy, Toolset
from fdstore.client import Store
from fdstore.errors import InvalidArgument
from tests.elements import Element, only

LINES = "".join(f"line {number}\n" for number in range(1, 2001))


def head_of(chars: int) -> str:
    """Return the whole lines at the beginning, in at most so many characters."""
    return LINES[: LINES.rfind("\n", 0, chars) + 1]


def build(chars: int) -> str:
    "Build."
    return LINES[:chars]


def shown(store: Store, chars: int, policy: ToolPolicy, **config: Any) -> Element | str:
    """Return the result of `build` under a policy: its element, or the text that stayed inline."""
    tools = Toolset(
        store.process("triage"), python=[build], config=FDConfig(tool={"build": policy}, **config)
    )
    result = tools.call("build", {"chars": chars}, call_id=f"toolu_{chars}").text
    return only(result) if result.startswith("<fd_result") else result


@pytest.mark.parametrize(
    ("policy", "inline"),
    [
        (ToolPolicy(), 8000),
        (ToolPolicy(max_direct_output_chars=100), 100),
        (ToolPolicy(inline="auto", max_direct_output_tokens=300), 100 * 9),
        (ToolPolicy(inline="always"), 17_000),
        (ToolPolicy(inline="never"), 0),
    ],
)
def test_a_tool_has_a_threshold_of_its_own(store: Store, policy: ToolPolicy, inline: int) -> None:
    for chars in {1, 100, 101, 900, 1800, 8000, 8001, 17_000} - ({900} if inline == 900 else set()):
        assert isinstance(shown(store, chars, policy), str) == (chars <= inline), chars


@pytest.mark.parametrize(
    ("policy", "head", "tail"),
    [
        (ToolPolicy(preview="head"), head_of(4000), None),
        (ToolPolicy(preview="head", preview_chars=100), head_of(100), None),
        (ToolPolicy(preview="tail", preview_chars=100), None, LINES[-100:]),
        (ToolPolicy(preview="both", preview_chars=200), head_of(100), LINES[-100:]),
        (ToolPolicy(preview_chars=400), head_of(300), LINES[-100:]),
    ],
)
def test_a_tool_decides_what_is_shown_of_its_results(
    store: Store, policy: ToolPolicy, head: str | None, tail: str | None
) -> None:
    result = shown(store, len(LINES), policy)

    assert isinstance(result, Element)
    bodies = {child.name: child.body for child in result.children if child.name != "message"}
    assert bodies.get("preview") == head
    assert bodies.get("tail") == tail
    assert ("lines" in result.attributes) == (head is not None)
    assert sum(len(body or "") for body in bodies.values()) <= max(policy.preview_chars or 0, 4000)
    if head is not None:
        assert result["lines"] == f"1-{head.count(chr(10))}"


def test_a_result_that_fits_the_preview_is_shown_whole(store: Store) -> None:
    result = shown(store, 90, ToolPolicy(inline="never", preview="both", preview_chars=100))

    assert isinstance(result, Element)
    assert [child.name for child in result.children] == ["message", "preview"]
    assert result.child("preview").body == LINES[:90]


def test_the_policy_of_the_configuration_counts_more_than_that_of_the_function(store: Store) -> None:
    @fdstore.tool(inline="never", preview="tail", preview_chars=100)
    def fetch() -> str:
        "Fetch."
        return "short"

    proc = store.process("triage")
    for policy, stored in (({}, True), ({"fetch": ToolPolicy(max_direct_output_chars=5)}, False)):
        tools = Toolset(proc, python=[fetch], config=FDConfig(tool=policy))

        assert (tools.call("fetch", {}).text != "short") == stored
    assert Toolset(proc, python=[fetch], config=FDConfig(tool={"fetch": ToolPolicy(inline="always")}))


def test_a_short_error_stays_inline_though_results_never_do(store: Store) -> None:
    @fdstore.tool(inline="never")
    def fail() -> str:
        "Fail."
        raise InvalidArgument("day", "there is no such day")

    result = Toolset(store.process("triage"), python=[fail]).call("fail", {})

    assert result.text.startswith('<fd_error type="invalid_argument">')


def test_a_policy_for_a_tool_that_is_not_there_is_refused(store: Store) -> None:
    proc = store.process("triage")
    for name, problem in (("grep", "there are: build"), ("read_fd", "read_fd is a built-in tool")):
        config = FDConfig(tool={name: ToolPolicy(inline="never")})
        with pytest.raises(InvalidArgument, match=problem) as caught:
            Toolset(proc, python=[build], config=config)

        assert caught.value.argument == "config.tool"
    config = FDConfig(tool={"grep": ToolPolicy(inline="never")})
    tools = Toolset(proc, python=[build], config=config, outside=["grep"])
    assert tools.offload("short", source="grep").descriptor is not None
    assert tools.offload("short", source="sed").descriptor is None
    with pytest.raises(InvalidArgument, match="outside: a list of names is needed"):
        Toolset(proc, outside="grep")


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"inline": "sometimes"}, "inline"),
        ({"inline": True}, "inline"),
        ({"preview": ["head"]}, "preview"),
        ({"preview_chars": 99}, "preview_chars"),
        ({"max_direct_output_chars": 0}, "max_direct_output_chars"),
        ({"max_direct_output_chars": 5.0}, "max_direct_output_chars"),
        ({"max_direct_output_tokens": True}, "max_direct_output_tokens"),
        ({"max_direct_output_tokens": 5, "max_direct_output_chars": 5}, "max_direct_output_tokens"),
        ({"inline": "always", "max_direct_output_tokens": 5}, "max_direct_output_tokens"),
        ({"inline": "always", "preview": "head"}, "preview"),
    ],
)
def test_wrong_values_and_contradictions_are_refused_by_name(values: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        FDConfig(tool={"build": ToolPolicy(**values)})
    assert caught.value.argument == f"tool.build.{name}"
    with pytest.raises(InvalidArgument) as caught:
        fdstore.tool(**values)
    assert caught.value.argument == name


def test_what_is_not_a_policy_or_not_a_function_is_refused() -> None:
    for values in ({"tool": {"build": {"inline": "never"}}}, {"tool": [1]}, {"count_tokens": 3}):
        with pytest.raises(InvalidArgument):
            FDConfig(**values)


def test_tokens_are_counted_by_the_function_that_is_given(store: Store) -> None:
    config = FDConfig(max_direct_output_tokens=3, count_tokens=lambda text: len(text.split()))
    tools = Toolset(store.process("triage"), config=config)

    assert tools.wrap("one two three") == "one two three"
    assert tools.wrap("one two three four").startswith("<fd_result")


def fails(text: str) -> int:
    raise RuntimeError("no table")


@pytest.mark.parametrize(
    "count", [fails, lambda text: None, lambda text: "9", lambda text: -1, lambda text: True]
)
def test_a_function_that_cannot_count_loses_nothing_and_is_logged_once(
    store: Store, caplog: pytest.LogCaptureFixture, count: Callable[[str], Any]
) -> None:
    tools = Toolset(
        store.process("triage"), config=FDConfig(max_direct_output_tokens=100, count_tokens=count)
    )

    with caplog.at_level(logging.WARNING):
        assert tools.wrap("short") == "short"
        assert tools.wrap("word " * 1000).startswith("<fd_result")

    assert [record.message.partition(";")[2] for record in caplog.records] == [
        " results are judged by the estimate"
    ]


def test_the_model_is_told_the_threshold(store: Store) -> None:
    proc = store.process("triage")

    plain = Toolset(proc, python=[build]).instructions
    config = FDConfig(max_direct_output_tokens=300, tool={"build": ToolPolicy(inline="never")})
    tokens = Toolset(proc, python=[build], config=config).instructions

    assert "A tool result over 8000 characters, or user input over 8000, is stored" in plain
    assert (
        "over about 300 tokens (of some tools another length), or user input over 8000 characters, is"
        in tokens
    )
