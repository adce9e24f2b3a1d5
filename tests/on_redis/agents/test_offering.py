"""An agent is offered the tools on descriptors once it has one."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fdstore.bench.fresh_trees import drop_with_numbers
from fdstore.client import Store
from fdstore.testing import Request, call, say, turn
from tests.on_redis.agents.test_crashes import Crashed, CrashingStore
from tests.on_redis.running_agents import SMALL, Agents, running, tool

READERS = ("read_fd", "search_fd")
FUNCTIONS = (tool("lines"), tool("echo"))
WORK = [
    call("echo", words="short", id="a"),
    turn(call("lines", count=200, id="b"), call("echo", words="short too", id="c")),
    call("read_fd", fd="fd:1", start=2, id="d"),
    say("Done."),
]


class Play:
    """Runs agents of a script; each has crashed after so many requests to Redis."""

    def __init__(self, store: Store, folder: Path, stack: ExitStack) -> None:
        self._store, self._folder, self._stack = store, folder, stack

    def __call__(self, script: list[Any], *crashes: int, **fields: Any) -> tuple[Request, ...]:
        def answer(request: Request) -> Any:
            return script[request.turn_number]

        agents: Agents = self._stack.enter_context(running(self._store, answer, self._folder))
        root = agents.launch(**{"tools": READERS, "python": FUNCTIONS, "file_descriptor": SMALL, **fields})
        for requests in crashes:
            with pytest.raises(Crashed):
                agents.attempt(root.id, CrashingStore(self._store.url, requests))
            agents.lose(root.id)
        assert agents.attempt(root.id) == "ended"
        drop_with_numbers(self._store, root.id)
        return agents.model.requests


@pytest.fixture
def play(store: Store, tmp_path: Path) -> Iterator[Play]:
    with ExitStack() as stack:
        yield Play(store, tmp_path, stack)


def test_the_tools_come_with_the_first_descriptor_and_a_note_that_explains_them(play: Play) -> None:
    requests = play(WORK)

    offered = [set(READERS) <= set(request.tools) for request in requests]
    assert offered == [False, False, True, True]
    assert [request.tools for request in requests[:2]] == [("lines", "echo")] * 2
    assert {request.system for request in requests} == {"You are SOLO."}
    last = requests[2].messages[-1]["content"]
    assert [block["type"] for block in last] == ["tool_result", "tool_result", "text"]
    assert last[-1]["text"].startswith("# Large texts\n")


def test_the_messages_of_a_request_begin_with_those_of_the_one_before(play: Play) -> None:
    requests = play(WORK)

    for before, request in itertools.pairwise(requests):
        assert request.messages[: len(before.messages)] == before.messages


@pytest.mark.parametrize("crash", [6, 8, 10, 12, 14, 17])
def test_a_resumed_agent_is_offered_the_same(play: Play, crash: int) -> None:
    sent = [json.dumps(request.raw) for request in play(WORK)]

    again = [json.dumps(request.raw) for request in play(WORK, crash)]

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
    play: Play, fields: dict[str, Any]
) -> None:
    [request] = play([say("Done.")], **fields)

    assert set(READERS) <= set(request.tools)
    assert "# Large texts\n" in request.system
