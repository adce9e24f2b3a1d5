"""The id of a tool call belongs to one call forever: another call never gets its answer."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore import Toolset, aio
from fdstore.client import Process
from fdstore.errors import InvalidArgument
from tests.elements import only

sent: list[str] = []


def send(words: str, times: int = 1) -> str:
    """Sends words."""
    sent.append(words)
    return f"sent {words}"


def save(words: str) -> str:
    """Saves words."""
    sent.append(words)
    return f"saved {words}"


@pytest.fixture
def tools(proc: Process) -> Toolset:
    sent.clear()
    return Toolset(proc, enabled=["read_fd", "write_fd", "close_fd"], python=[send, save])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("send", {"words": "b"}), ("save", {"words": "a"}), ("send", {"words": "a", "times": 2})],
)
def test_reusing_a_call_id_with_another_tool_or_arguments_is_an_invalid_argument(
    tools: Toolset, name: str, arguments: dict[str, Any]
) -> None:
    tools.call("send", {"words": "a"}, call_id="call_0")

    result = tools.call(name, arguments, call_id="call_0")

    assert result.is_error
    assert only(result.content)["type"] == "invalid_argument"
    assert "'call_0' was used for another call" in result.content
    assert sent == ["a"]


def test_a_call_id_that_created_a_descriptor_creates_no_second_one(
    tools: Toolset, proc: Process, execute: Any
) -> None:
    tools.call("write_fd", {"data": "first"}, call_id="call_0")
    # as if the loop had died just before this was stored
    execute("HDEL", "fdstore:{triage}:triage:calls", "call_0/outcome")

    other = tools.call("write_fd", {"data": "second"}, call_id="call_0")
    again = tools.call("write_fd", {"data": "first"}, call_id="call_0")

    assert (other.is_error, again.is_error) == (True, False)
    assert [proc.read(d.fd).text for d in proc.list()] == ["first"]


def test_a_repeated_call_gets_the_first_answer_whatever_its_argument_order(tools: Toolset) -> None:
    first = tools.call("send", {"words": "a", "times": 2}, call_id="call_0")

    assert tools.call("send", {"times": 2, "words": "a"}, call_id="call_0") == first
    assert sent == ["a"]


def test_wrapping_another_output_under_a_used_call_id_is_refused(tools: Toolset, proc: Process) -> None:
    tools.wrap("a" * 9000, call_id="call_0")

    with pytest.raises(InvalidArgument, match="call_id"):
        tools.wrap("b" * 9000, call_id="call_0")

    assert tools.wrap("short", call_id="call_0") == "short"
    assert len(proc.list()) == 1


def test_wrapped_output_and_a_function_call_may_share_a_call_id(proc: Process) -> None:
    def lots() -> str:
        return "a" * 9000

    tools = Toolset(proc, python=[lots])
    tools.call("lots", {}, call_id="call_0")

    shown = tools.wrap("b" * 9000, call_id="call_0")

    assert only(shown)["fd"] == "fd:2"
    assert proc.read("fd:2").text.startswith("bbb")


def test_the_awaitable_toolset_refuses_reused_call_ids_too(awaited: Any) -> None:
    async def reuse(proc: aio.Process) -> tuple[bool, bool]:
        tools = aio.Toolset(proc, python=[send])
        first = await tools.call("send", {"words": "a"}, call_id="call_0")
        second = await tools.call("send", {"words": "b"}, call_id="call_0")
        await tools.wrap("a" * 9000, call_id="call_1")
        with pytest.raises(InvalidArgument, match="call_id"):
            await tools.wrap("b" * 9000, call_id="call_1")
        return first.is_error, second.is_error

    assert awaited(reuse) == (False, True)


def test_a_call_succeeds_although_a_full_redis_cannot_store_its_result(
    tools: Toolset, proc: Process, fill_redis: Any
) -> None:
    proc.create("x" * 1000)
    fill_redis()

    closed = tools.call("close_fd", {"fd": "fd:1"}, call_id="call_0")
    result = tools.call("send", {"words": "a"}, call_id="call_1")

    assert (closed.is_error, proc.list()) == (False, [])
    assert (result.content, result.is_error) == ("sent a", False)


@pytest.mark.parametrize("arguments", [{"words": float("nan")}, {"words": object()}, {1: 2, "a": 3}, 7])
def test_arguments_that_are_not_json_are_refused_with_a_call_id_too(tools: Toolset, arguments: Any) -> None:
    assert tools.call("send", arguments, call_id="call_0").is_error
