"""Tools that are held back cost nothing before the first descriptor, and no descriptor is without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fdstore import Process, Store, Toolset
from fdstore.errors import InvalidArgument

LONG = "a long line\n" * 1000
READERS = ["read_fd", "search_fd"]


def report() -> str:
    """Return a long report."""
    return LONG


def fail() -> str:
    """Fail with a long message."""
    raise ValueError(LONG)


def held(proc: Process, hold_back: Any = True, **options: Any) -> Toolset:
    return Toolset(proc, **{"enabled": READERS, **options}, hold_back=hold_back)


def names(tools: Toolset) -> list[str]:
    return [each["name"] for each in tools.definitions]


def deferred(tools: Toolset) -> list[str]:
    return [each["name"] for each in tools.definitions if each.get("defer_loading")]


def is_bringing(content: Any) -> bool:
    """Return whether a result brings the readers, after what it shows."""
    if not isinstance(content, list):
        return False
    *_, told, read, search = content
    return (
        told["text"].startswith("# Large texts\n")
        and read == {"type": "tool_reference", "tool_name": "read_fd"}
        and search == {"type": "tool_reference", "tool_name": "search_fd"}
    )


# from the first descriptor on


def test_tools_are_offered_from_the_first_descriptor_on(proc: Process) -> None:
    tools = held(proc, python=[report])
    before = names(tools), tools.instructions

    tools.call("report", {})

    assert before == (["report"], "")
    assert names(tools) == [*READERS, "report"]
    assert tools.instructions.startswith("# Large texts\n")


@pytest.mark.parametrize(
    "work",
    [
        lambda tools: tools.offload(LONG),
        lambda tools: tools.wrap(LONG),
        lambda tools: tools.wrap_input(LONG),
        lambda tools: tools.offload_parts([LONG]),
        lambda tools: tools.take_references('<ref id="plan">dig</ref>'),
        lambda tools: tools.process.create("a preload"),
        lambda tools: tools.process.put("notes", "a name"),
    ],
    ids=["offload", "wrap", "input", "parts", "reference", "preload", "name"],
)
def test_whatever_makes_a_descriptor_offers_its_readers(
    proc: Process, work: Callable[[Toolset], object]
) -> None:
    tools = held(proc)
    assert names(tools) == []

    work(tools)

    assert names(tools) == READERS


@pytest.mark.parametrize("hold_back", [True, "deferred"])
def test_nothing_is_held_back_of_a_process_with_descriptors(proc: Process, hold_back: Any) -> None:
    proc.create("a preload")

    tools = held(proc, hold_back)

    assert (names(tools), deferred(tools)) == (READERS, [])
    assert tools.instructions


@pytest.mark.parametrize("hold_back", [True, "deferred"])
def test_nothing_is_held_back_beside_a_tool_that_makes_descriptors(proc: Process, hold_back: Any) -> None:
    tools = held(proc, hold_back, enabled=["read_fd", "write_fd"])

    assert (names(tools), deferred(tools)) == (["read_fd", "write_fd"], [])
    assert "write_fd" in tools.instructions


# deferred


def test_the_first_result_that_is_a_descriptor_brings_the_deferred_tools(proc: Process) -> None:
    tools = held(proc, "deferred", python=[report])
    before = tools.definitions

    short = tools.offload("short")
    first = tools.call("report", {}, call_id="toolu_1")
    second = tools.call("report", {}, call_id="toolu_2")
    read = tools.call("read_fd", {"fd": "fd:1"})

    assert deferred(tools) == READERS
    assert (tools.definitions, tools.instructions) == (before, "")
    assert short.content == "short"
    assert is_bringing(first.content)
    assert first.content[0]["text"].startswith('<fd_result fd="fd:1"')
    assert isinstance(second.content, str)
    assert isinstance(read.content, str)
    assert tools.call("report", {}, call_id="toolu_1") == first


@pytest.mark.parametrize("output", [LONG, [{"type": "text", "text": LONG}]], ids=["text", "blocks"])
def test_an_output_of_the_users_own_tool_brings_them_too(proc: Process, output: Any) -> None:
    tools = held(proc, "deferred")

    offloaded = tools.offload(output)

    assert is_bringing(offloaded.content)
    assert offloaded.descriptor is not None


def test_of_the_calls_of_a_turn_the_first_descriptor_brings_them(proc: Process) -> None:
    tools = held(proc, "deferred", python=[report])
    calls = [
        {"type": "tool_use", "id": f"toolu_{number}", "name": "report", "input": {}} for number in (1, 2, 3)
    ]

    results = tools.call_all(calls)

    assert [is_bringing(each["content"]) for each in results] == [True, False, False]


@pytest.mark.parametrize(
    "work",
    [
        lambda tools: tools.call("fail", {}),
        lambda tools: tools.wrap(LONG),
        lambda tools: tools.wrap_input(LONG),
        lambda tools: tools.offload_parts([LONG]),
        lambda tools: tools.take_references('<ref id="plan">dig</ref>'),
    ],
    ids=["error", "wrap", "input", "parts", "reference"],
)
def test_where_the_api_takes_no_references_the_tools_are_offered_from_then_on(
    proc: Process, work: Callable[[Toolset], object]
) -> None:
    tools = held(proc, "deferred", python=[fail])
    assert deferred(tools) == READERS

    work(tools)

    assert (names(tools), deferred(tools)) == ([*READERS, "fail"], [])
    assert tools.instructions


def test_a_cleared_result_keeps_the_references_that_it_brought(proc: Process) -> None:
    tools = held(proc, "deferred", python=[report])
    messages: list[Any] = [{"role": "user", "content": "Why?"}]
    for number in range(12):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "report", "input": {}}
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": tools.call_all([call])},
        ]

    cleared = tools.clear(messages, 200_000)

    first, second = (cleared[number]["content"][0]["content"] for number in (2, 4))
    assert is_bringing(first)
    assert len(first) == len(messages[2]["content"][0]["content"])
    assert "fd_result" not in first[0]["text"]
    assert isinstance(second, str)
    assert "fd_result" not in second


def test_deferred_tools_are_refused_where_they_cannot_be_had(proc: Process) -> None:
    tools = held(proc, "deferred")

    for shape in ("openai", "openai-responses", "mcp"):
        with pytest.raises(InvalidArgument, match="hold_back=True"):
            tools.definitions_for(shape)
    assert [tool.to_dict()["defer_loading"] for tool in tools.runnable()] == [True, True]


def test_the_runner_takes_its_tools_once_so_they_are_not_held_back(proc: Process) -> None:
    with pytest.raises(InvalidArgument, match='hold_back="deferred"'):
        held(proc).runnable()


@pytest.mark.parametrize("hold_back", ["late", 1, None, 0])
def test_another_way_to_hold_back_is_refused(proc: Process, hold_back: Any) -> None:
    with pytest.raises(InvalidArgument, match="hold_back"):
        held(proc, hold_back)


def test_without_descriptors_there_is_nothing_to_hold_back(store: Store) -> None:
    tools = Toolset(store.process(), enabled=[], python=[report], hold_back=True)

    assert "report" in names(tools)
