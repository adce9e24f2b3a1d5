"""Tools that are held back cost nothing before the first descriptor, and no descriptor is without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic
import pytest

from fdstore import Process, Store, Toolset
from fdstore.errors import InvalidArgument
from fdstore.testing import ScriptedModel, call, say

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


REFERENCES = [{"type": "tool_reference", "tool_name": name} for name in READERS]


def loads(result: Any) -> bool:
    """Return whether a result loads the readers, and what it shows and the instructions follow it."""
    if not result.after:
        return False
    shown, told = result.after[-2:]
    return (
        result.content == REFERENCES
        and shown["text"].startswith("<fd_result ")
        and told["text"].startswith("# Large texts\n")
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


def test_the_first_result_that_is_a_descriptor_loads_the_deferred_tools(proc: Process) -> None:
    tools = held(proc, "deferred", python=[report])
    before = tools.definitions

    short = tools.offload("short")
    first = tools.call("report", {}, call_id="toolu_1")
    second = tools.call("report", {}, call_id="toolu_2")
    read = tools.call("read_fd", {"fd": "fd:1"})

    assert deferred(tools) == READERS
    assert (tools.definitions, tools.instructions) == (before, "")
    assert short.content == "short"
    assert loads(first)
    assert first.text.startswith('<fd_result fd="fd:1"')
    assert (second.is_text, second.after, read.is_text, read.after) == (True, [], True, [])
    assert tools.call("report", {}, call_id="toolu_1") == first


@pytest.mark.parametrize("output", [LONG, [{"type": "text", "text": LONG}]], ids=["text", "blocks"])
def test_an_output_of_the_users_own_tool_loads_them_too(proc: Process, output: Any) -> None:
    tools = held(proc, "deferred")

    offloaded = tools.offload(output)

    assert loads(offloaded)
    assert offloaded.descriptor is not None


def calls(*numbers: int) -> list[dict[str, Any]]:
    return [
        {"type": "tool_use", "id": f"toolu_{number}", "name": "report", "input": {}} for number in numbers
    ]


def test_what_a_result_that_loads_tools_shows_follows_the_results_of_its_turn(proc: Process) -> None:
    tools = held(proc, "deferred", python=[report])

    first, second, where, shown, told = tools.call_all(calls(1, 2))
    later = tools.call_all(calls(3))

    assert first == {"type": "tool_result", "tool_use_id": "toolu_1", "content": REFERENCES}
    assert second["content"].startswith('<fd_result fd="fd:2"')
    assert where["text"] == "The result of call 1, of report:"
    assert shown["text"].startswith('<fd_result fd="fd:1"')
    assert told["text"].startswith("# Large texts\n")
    assert [each["type"] for each in later] == ["tool_result"]
    assert tools.call_all(calls(1, 2)) == [first, second, where, shown, told]


def test_a_message_with_deferred_tools_is_taken_by_the_messages_api(proc: Process) -> None:
    tools = held(proc, "deferred", python=[report])

    script = [call("report"), call("read_fd", fd="fd:1", start=2), say("Done.")]

    with ScriptedModel(script) as model:
        client = anthropic.Anthropic(base_url=model.base_url, api_key=model.api_key)
        messages: list[Any] = [{"role": "user", "content": "Report."}]
        while True:
            reply = client.messages.create(
                model="any", max_tokens=99, system="Be brief.", tools=tools.definitions, messages=messages
            )
            messages.append({"role": "assistant", "content": reply.content})
            if not (answers := tools.call_all(reply.content)):
                break
            messages.append({"role": "user", "content": answers})

    sent = [each.raw["tools"] for each in model.requests]
    assert sent[0] == sent[1] == sent[2]
    assert "a long line" in str(messages[-2]["content"])


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


def test_clearing_leaves_the_result_that_loads_tools(proc: Process) -> None:
    tools = held(proc, "deferred", python=[report])
    messages: list[Any] = [{"role": "user", "content": "Why?"}]
    for number in range(12):
        [asked] = calls(number)
        messages += [
            {"role": "assistant", "content": [asked]},
            {"role": "user", "content": tools.call_all([asked])},
        ]

    cleared = tools.clear(messages, 200_000)

    assert cleared[2] == messages[2]
    assert "fd_result" not in cleared[4]["content"][0]["content"]


def test_deferred_tools_are_refused_where_they_cannot_be_had(proc: Process) -> None:
    tools = held(proc, "deferred")

    for shape in ("openai", "openai-responses", "mcp"):
        with pytest.raises(InvalidArgument, match="hold_back=True"):
            tools.definitions_for(shape)


@pytest.mark.parametrize("hold_back", [True, "deferred"])
def test_the_runner_takes_its_tools_once_so_they_are_not_held_back(proc: Process, hold_back: Any) -> None:
    with pytest.raises(InvalidArgument, match="hold_back"):
        held(proc, hold_back).runnable()


@pytest.mark.parametrize("hold_back", ["late", 1, None, 0])
def test_another_way_to_hold_back_is_refused(proc: Process, hold_back: Any) -> None:
    with pytest.raises(InvalidArgument, match="hold_back"):
        held(proc, hold_back)


def test_without_descriptors_there_is_nothing_to_hold_back(store: Store) -> None:
    tools = Toolset(store.process(), enabled=[], python=[report], hold_back=True)

    assert "report" in names(tools)
