"""Agents that spawn agents on a real worker: what is passed on, what runs concurrently, what is refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import fdstore.aio
from fdstore.testing import Request, call, say, slow, turn
from tests.waiting import PATIENCE_S
from tests.with_workers.agent_harness import SPAWN, AgentHarness, spawner

# what travels


def test_a_child_reads_the_texts_of_its_parent_under_their_ids(shared_harness: AgentHarness) -> None:
    shared_harness.program("root", tools="read_fd spawn", links="reader")
    shared_harness.program("reader", tools="read_fd")
    share = call("spawn", program_name="reader", query="Read page 2.", additional_preload_fds=["fd:1"])
    shared_harness.set_script(
        {
            "ROOT": [call("lines", count=3000), share, say("Done.")],
            "READER": [call("read_fd", fd="fd:1", start=2), say("Read.")],
        }
    )

    root = shared_harness.run()

    expected = shared_harness.store.process(root).read("fd:1", start=2)
    [read] = shared_harness.results(f"{root}.1")
    assert read.content.startswith('<fd_content fd="fd:1" page="2"')
    assert f"\n{expected.text}\n" in read.content
    assert "\nRead.\n" in shared_harness.results(root)[1].content
    # by reference: the tree holds the text once
    assert (shared_harness.store.tree(root).fds, shared_harness.store.tree(root).bytes) == (
        1,
        expected.total_chars,
    )


def test_a_large_answer_is_returned_by_reference_and_outlives_the_child(shared_harness: AgentHarness) -> None:
    shared_harness.program("root", tools="read_fd spawn", links="writer")
    shared_harness.program("writer", tools="read_fd")
    answer = "".join(f"verse {number}\n" for number in range(2000))
    shared_harness.set_script(
        {
            "ROOT": [
                call("spawn", program_name="writer", query="Write."),
                call("read_fd", fd="fd:1", start=2),
                say("Done."),
            ],
            "WRITER": [say(answer)],
        }
    )

    root = shared_harness.run()

    spawned, read = shared_harness.results(root)
    assert (
        f'<process_result process="{root}.1" program="writer" state="exited" exit_code="0">'
        in spawned.content
    )
    assert '<fd_result fd="fd:1"' in spawned.content
    assert 'page="2"' in read.content
    held = shared_harness.store.process(root)
    assert held.read("fd:1", read_all=True).text == answer
    assert held.stat("fd:1").producer == f"{root}.1"
    assert shared_harness.store.process(f"{root}.1").list() == []
    assert shared_harness.store.tree(root).fds == 1


def test_files_named_by_a_program_and_by_a_call_are_preloaded(shared_harness: AgentHarness) -> None:
    (shared_harness.folder / "rules.txt").write_text("Be kind.\n")
    (shared_harness.folder / "facts.txt").write_text("Water is wet.\n")
    shared_harness.program("root", tools="spawn", links="reader", more='[preload]\nroot = "."')
    shared_harness.program("reader", more='[preload]\nfiles = ["rules.txt"]')
    share = call("spawn", program_name="reader", query="Read.", additional_preload_files=["facts.txt"])
    shared_harness.set_script({"ROOT": [share, say("Done.")], "READER": [say("Read.")]})

    shared_harness.run()

    [asked] = [request for request in shared_harness.requests if "READER" in request.system]
    assert asked.system.index("Be kind.") < asked.system.index("Water is wet.")


# what runs when


def test_two_spawns_of_one_turn_run_at_the_same_time(shared_harness: AgentHarness) -> None:
    shared_harness.program("root", tools="spawn", links="reader")
    shared_harness.program("reader")
    both = threading.Barrier(2, timeout=PATIENCE_S)

    def reader(request: Request) -> Any:
        both.wait()  # passes only when two children ask the model at once
        return say(f"Read {request.last_text()}.")

    first, second = (call("spawn", program_name="reader", query=query) for query in ("one", "two"))
    shared_harness.set_script({"ROOT": [turn(first, second), say("Done.")], "READER": reader})

    root = shared_harness.run()

    shown = [result.text for result in shared_harness.requests[-1].tool_results()]
    assert ["\nRead one.\n" in shown[0], "\nRead two.\n" in shown[1]] == [True, True]
    assert shared_harness.record(root).exit_code == 0


# what goes wrong


@pytest.mark.parametrize(
    ("limit", "asked", "failing"),
    [("tree_depth = 1", 1, [0]), ("tree_processes = 2", 2, [1]), ("tree_live = 2", 2, [1])],
)
def test_a_limit_of_the_tree_is_an_error_that_the_agent_reads(
    shared_harness: AgentHarness, limit: str, asked: int, failing: list[int]
) -> None:
    shared_harness.program("root", tools="spawn", links="reader", more=f"[limits]\n{limit}")
    shared_harness.program("reader")
    spawn = call("spawn", program_name="reader", query="Read.")
    shared_harness.set_script(
        {"ROOT": [turn(*[spawn] * asked), say("Done.")], "READER": [slow(say("Read."), 0.2)]}
    )

    root = shared_harness.run()

    shown = shared_harness.requests[-1].tool_results()
    name, number = limit.split(" = ")
    assert [index for index, result in enumerate(shown) if result.is_error] == failing
    for index in failing:
        assert '<fd_error type="spawn_limit">' in shown[index].text
        assert f"the limit {name} of this tree is {number}" in shown[index].text
    assert shared_harness.record(root).exit_code == 0


# custom agent loops, which wait for their children themselves


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
