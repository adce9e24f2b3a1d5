"""A waiting agent becomes ready when the last process it waits for ends, however deep in the tree that is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Store
from fdstore.model.records import TreeLimits
from fdstore.store.processes import processes
from fdstore.testing import call, say, turn
from tests.on_redis.running_agents import Agents, running


def waiting_for(agents: Agents, *targets: str) -> None:
    """Launch `solo` with a child and a grandchild, and let it wait for these processes."""
    agents.launch(tools=("wait",))
    agents.store.process("solo").child().child()
    agents.store.process("solo.1").child()
    assert agents.attempt("solo") == "waiting"
    assert agents.record().waiting_for == targets


@pytest.mark.parametrize("how", ["ended", "cancelled", "cancelled with its parent"])
def test_the_end_of_a_grandchild_wakes_the_agent_that_waits_for_it(
    store: Store, tmp_path: Path, how: str
) -> None:
    with running(store, [call("wait", target="solo.1.1"), say("Done.")], tmp_path) as agents:
        waiting_for(agents, "solo.1.1")

        if how == "ended":
            woken = store.run(processes.end(store.process("solo.1.1").handle))
        else:
            target = "solo.1" if how == "cancelled with its parent" else "solo.1.1"
            woken = store.run(processes.cancel("fdstore", target)).woken

        assert woken == ("solo",)
        assert agents.record().state == "ready"
        assert agents.attempt("solo") == "ended"
        assert f'state="{"exited" if how == "ended" else "cancelled"}"' in agents.results()[0].content


def test_one_cancel_ends_all_descendants_that_an_ancestor_waits_for(store: Store, tmp_path: Path) -> None:
    both = turn(call("wait", target="solo.1.1"), call("wait", target="solo.1.2"))
    with running(store, [both, say("Done.")], tmp_path) as agents:
        waiting_for(agents, "solo.1.1", "solo.1.2")

        woken = store.run(processes.cancel("fdstore", "solo.1")).woken

        assert (woken, agents.record().state) == (("solo",), "ready")


def test_an_ancestor_keeps_waiting_for_unfinished_processes(store: Store, tmp_path: Path) -> None:
    both = turn(call("wait", target="solo.1.1"), call("wait", target="solo.1.2"))
    with running(store, [both, say("Done.")], tmp_path) as agents:
        waiting_for(agents, "solo.1.1", "solo.1.2")

        woken = store.run(processes.end(store.process("solo.1.1").handle))

        assert woken == ()
        assert (agents.record().state, agents.record().waiting_for) == ("waiting", ("solo.1.2",))


def test_every_ancestor_that_waits_for_a_process_is_woken_by_its_end(store: Store, execute: Any) -> None:
    root = store.process("solo", limits=TreeLimits(tree_depth=4))
    middle = root.child().child()
    last = middle.child()
    for process in ("solo", "solo.1.1"):
        record = f"fdstore:{{solo}}:{process}"
        execute("HSET", record, "state", "waiting", "waiting_for", last.id)

    woken = store.run(processes.end(last.handle))

    assert woken == ("solo.1.1", "solo")
    assert [member.state for member in store.tree("solo").members if member.id in woken] == ["ready", "ready"]


@pytest.mark.thorough("its size takes long")
def test_a_tree_of_more_than_eight_thousand_processes_is_cancelled_completely(
    store: Store, execute: Any
) -> None:
    store.process("solo", limits=TreeLimits(tree_processes=20_000, tree_live=20_000))
    make_many = """
        for number = 1, ARGV[1] do
          local id = 'solo.' .. number
          redis.call('HSET', KEYS[1] .. ':' .. id, 'state', 'open', 'parent', 'solo', 'attempt', 0)
          redis.call('ZADD', KEYS[1] .. ':processes', number, id)
        end
        redis.call('HINCRBY', KEYS[1], 'live', ARGV[1])
        redis.call('HINCRBY', KEYS[1], 'processes', ARGV[1])"""
    execute("EVAL", make_many, 1, "fdstore:{solo}", 8_200)

    done = store.run(processes.cancel("fdstore", "solo"))

    assert len(done.cancelled) == 8_201
    assert {member.state for member in store.tree("solo").members} == {"cancelled"}
