"""Custom agent loops that spawn agents on a real worker, and wait for them themselves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import fdstore.aio
from fdstore.testing import Request, call, say
from tests.waiting import PATIENCE_S
from tests.with_workers.agent_harness import SPAWN, AgentHarness, spawner


def test_a_custom_agent_loop_spawns_once_for_a_call(shared_harness: AgentHarness) -> None:
    shared_harness.program("reader", tools="read_fd")
    shared_harness.set_script({"READER": [call("read_fd", fd="fd:1"), say("Read.")]})
    tools = spawner(shared_harness)

    first = tools.call("spawn", SPAWN, call_id="toolu_1")
    again = tools.call("spawn", SPAWN, call_id="toolu_1")

    assert (first.is_error, first) == (False, again)
    assert "\nRead.\n" in first.content
    assert "\none\ntwo\n" in shared_harness.requests[-1].tool_results()[0].text
    assert shared_harness.store.tree("own-loop").processes == 2


def echo_when_two_ask() -> Callable[[Request], Any]:
    """Return a script that answers a request only while another is asked too."""
    both = threading.Barrier(2, timeout=PATIENCE_S)

    def echo(request: Request) -> Any:
        both.wait()
        return say(request.last_text())

    return echo


def test_an_event_loop_is_not_blocked_while_children_run(shared_harness: AgentHarness) -> None:
    shared_harness.program("reader")
    shared_harness.set_script({"READER": echo_when_two_ask()})

    async def main() -> list[str]:
        async with await fdstore.aio.connect(shared_harness.url) as store:
            proc = await store.process("event-loop")
            programs = {"reader": shared_harness.folder / "reader.toml"}
            tools = fdstore.aio.Toolset(proc, enabled=["spawn"], programs=programs)
            calls = [
                tools.call("spawn", {"program_name": "reader", "query": query}, call_id=query)
                for query in ("one", "two")
            ]
            return [result.content for result in await asyncio.gather(*calls)]

    one, two = asyncio.run(main())

    assert ("\none\n" in one, "\ntwo\n" in two) == (True, True)


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaiting"])
def test_the_spawns_of_one_turn_run_at_the_same_time_and_are_answered_in_order(
    shared_harness: AgentHarness, awaited: bool
) -> None:
    shared_harness.program("reader")
    shared_harness.set_script({"READER": echo_when_two_ask()})
    programs = {"reader": shared_harness.folder / "reader.toml"}
    blocks: list[Any] = [{"type": "text", "text": "I ask two."}]
    for query in ("one", "two"):
        asked = {"program_name": "reader", "query": query}
        blocks.append({"type": "tool_use", "id": f"toolu_{query}", "name": "spawn", "input": asked})

    async def turn() -> list[Any]:
        async with await fdstore.aio.connect(shared_harness.url) as store:
            proc = await store.process("one-turn")
            return await fdstore.aio.Toolset(proc, enabled=["spawn"], programs=programs).call_all(blocks)

    if awaited:
        answers = asyncio.run(turn())
    else:
        proc = shared_harness.store.process("one-turn")
        answers = fdstore.Toolset(proc, enabled=["spawn"], programs=programs).call_all(blocks)

    assert [each["tool_use_id"] for each in answers] == ["toolu_one", "toolu_two"]
    assert "\none\n" in answers[0]["content"]
    assert "\ntwo\n" in answers[1]["content"]
