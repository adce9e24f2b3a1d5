"""Overload: processes that multiply, and trees that are never ended."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fdstore.client import Store
from fdstore.model.records import TreeLimits
from fdstore.store.contents import contents
from fdstore.testing import Reply, Request, call, say, turn
from fdstore.wire.operation import Operation
from fdstore_workers.sweeper import collect_due, sweep
from tests.chaos.agents import answer_of, launch, write_program
from tests.chaos.conftest import Execute, Faults
from tests.chaos.worker_pool import WorkerPool
from tests.waiting import wait_until

BOMB = """
[tools]
enabled = ["spawn"]
[linked_programs]
bomb = "bomb.toml"
[limits]
tree_depth = 7
tree_live = 16
tree_processes = 60
"""
TREES = 1000
LONG_AGO_S = 100_000


def test_a_spawn_bomb_stops_at_the_limits_and_then_drains(
    store: Store, worker_pool: WorkerPool, tmp_path: Path, execute: Execute, faults: Faults
) -> None:
    program = write_program(tmp_path, "bomb", BOMB)
    most_live = 0

    def script(request: Request) -> Reply:
        if request.turn_number == 0:
            two = [call("spawn", program_name="bomb", query="go on") for _ in range(2)]
            return turn(*two)
        for result in request.tool_results():
            if result.is_error and "spawn_limit" in result.text:
                faults.note("spawn refused")
        return say("drained")

    with worker_pool.scripted(script):
        worker_pool.start_worker(4).wait_until_ready()
        root = launch(store, program, "go on")

        def drained() -> bool:
            nonlocal most_live
            tree = store.tree(root.id)
            most_live = max(most_live, tree.live)
            return tree.live == 0

        wait_until(drained, what="the end of the tree")
        wait_until(lambda: execute("LLEN", "fdq:fdstore:queue") == 0, what="the end of the queue")

    tree = store.tree(root.id)
    print(f"{tree.processes} processes, {most_live} of them at a time")
    assert 16 < tree.processes <= 60
    assert most_live <= 16
    assert max(member.id.count(".") + 1 for member in tree.members) <= 7
    assert {(member.state, member.losses) for member in tree.members} == {("exited", 0)}
    assert answer_of(store, root.id).text == "drained"


@pytest.mark.thorough("on_redis/test_collect.py removes fewer trees")
def test_one_sweep_removes_every_key_of_a_thousand_abandoned_trees(
    store: Store, execute: Execute, faults: Faults
) -> None:
    limits = TreeLimits(retention_days=1)
    for number in range(TREES):
        proc = store.process(f"tree-{number}", limits=limits)
        proc.create(f"text of {number}\n")
        if number % 10 == 0:
            child = proc.child(share=["fd:1"])
            child.create("of a child")
            proc.fork().end()
            unfinished = contents.create(child.handle, "never committed", "text")
            store.run(run_without_commit(unfinished))
        faults.note("tree abandoned")
    then = time.time() - LONG_AGO_S
    for number in range(TREES):
        execute("HSET", f"fdstore:{{tree-{number}}}", "used_at", f"{then:.3f}")
        execute("ZADD", "fdstore:trees", f"{then:.3f}", f"tree-{number}")

    began = time.monotonic()
    sweep(store, lambda process: None)
    collect_due(store)
    print(f"collected in {time.monotonic() - began:.1f} s")

    assert [key for key in execute("KEYS", "*") if execute("PTTL", key) == -1] == []


def run_without_commit(creation: Operation[object]) -> Operation[None]:
    """Run an operation except its commit, like a client that died before it."""
    batch = next(creation)
    creation.close()
    assert isinstance(batch, list)
    yield batch[:-1]
