"""An agent is offered the tools on descriptors once it has one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from fdstore.bench.fresh_trees import drop_with_numbers
from fdstore.client import Store
from fdstore.testing import Request, call, say, turn
from tests.on_redis.running_agents import SMALL, Play, tool

RequestsOf = Callable[..., tuple[Request, ...]]
READERS = ("read_fd", "search_fd")
FUNCTIONS = (tool("lines"), tool("echo"))
WORK = [
    call("echo", words="short", id="a"),
    turn(call("lines", count=200, id="b"), call("echo", words="short too", id="c")),
    call("read_fd", fd="fd:1", start=2, id="d"),
    say("Done."),
]


@pytest.fixture
def requests_of(play: Play, store: Store) -> RequestsOf:
    """`requests_of(script, *crashes, **program)`: the requests of an agent that was run to its end."""

    def played(script: list[Any], *crashes: int, **fields: Any) -> tuple[Request, ...]:
        options = {"tools": READERS, "python": FUNCTIONS, "file_descriptor": SMALL, **fields}
        agents = play(lambda request: script[request.turn_number], crashes=crashes, **options)
        drop_with_numbers(store, "solo")
        return agents.model.requests

    return played


def test_the_tools_come_with_the_first_descriptor_and_a_note_that_explains_them(
    requests_of: RequestsOf,
) -> None:
    requests = requests_of(WORK)

    offered = [set(READERS) <= set(request.tools) for request in requests]
    assert offered == [False, False, True, True]
    assert [request.tools for request in requests[:2]] == [("lines", "echo")] * 2
    assert {request.system for request in requests} == {"You are SOLO."}
    last = requests[2].messages[-1]["content"]
    assert [block["type"] for block in last] == ["tool_result", "tool_result", "text"]
    assert last[-1]["text"].startswith("# Large texts\n")


@pytest.mark.parametrize("crash", [6, 8, 10, 12, 14, 17])
def test_a_resumed_agent_is_offered_the_same(requests_of: RequestsOf, crash: int) -> None:
    sent = [json.dumps(request.raw) for request in requests_of(WORK)]

    again = [json.dumps(request.raw) for request in requests_of(WORK, crash)]

    assert list(dict.fromkeys(again)) == sent  # an answer that was not stored is asked for twice


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": (*READERS, "write_fd")},
        {"python": ()},
        {"query": "A long question. " * 20},
        {"system": "You are SOLO. " + "A long prompt. " * 8000},
    ],
    ids=["can make one", "no functions", "has one", "long prompt"],
)
def test_nothing_is_held_back_from_an_agent_that_has_a_use_for_the_tools(
    requests_of: RequestsOf, fields: dict[str, Any]
) -> None:
    [request] = requests_of([say("Done.")], **fields)

    assert set(READERS) <= set(request.tools)
    assert "# Large texts\n" in request.system
