"""Workers that die at any moment: the work is still done exactly once, and nothing is lost."""

from __future__ import annotations

import random
import threading
from pathlib import Path

from fdstore.agent.launch import launch_root
from fdstore.agent.program_loader import load
from fdstore.client import Store
from fdstore.runtime.waker import waker
from fdstore.store.processes import process_records
from fdstore.testing import Reply, Request, ScriptedModel, call, say
from tests.chaos.agent_tree import PROCESSES, TURNS, AgentTree, expected_answer
from tests.chaos.conftest import Faults
from tests.chaos.history import Observer, Takeovers, check_lives
from tests.chaos.worker_pool import WorkerPool
from tests.waiting import PATIENCE_S, wait_until

KILLS = 3
LONGEST_PAUSE_S = 1.0


def test_a_tree_whose_workers_are_killed_gives_the_same_answer(
    seed: int, store: Store, worker_pool: WorkerPool, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    agent_tree = AgentTree(tmp_path, pace_s=0.25)
    with ScriptedModel(agent_tree.script) as model:
        worker_pool.environment |= model.environ
        for worker in [worker_pool.start_worker() for _ in range(KILLS + 1)]:
            worker.wait_until_ready()
        root = agent_tree.launch(store)
        observer, takeovers = Observer(store, root.id), Takeovers(store)
        with observer.watch(), takeovers.record():
            for _ in range(KILLS):
                threading.Event().wait(rng.uniform(0, LONGEST_PAUSE_S))
                takeovers.expect(worker_pool.kill_one(store, [root.id], rng))
            wait_until(lambda: store.tree(root.id).live == 0, PATIENCE_S, "the end of the tree")

    print(takeovers)
    members = store.tree(root.id).members
    assert len(members) == PROCESSES, members
    check_lives(store, members, TURNS)
    assert store.run(process_records.answer_of(store.prefix, root.id)).text == expected_answer()
    observer.check_nothing_lost(root.id)


COURIER = """
[model]
name = "scripted"
[prompt]
system = "You are COURIER."
[tools]
python = ["agent_tools:deliver"]
"""


def test_a_tool_that_must_not_repeat_runs_once_even_if_its_worker_dies_during_the_call(
    store: Store, worker_pool: WorkerPool, tmp_path: Path, faults: Faults
) -> None:
    def courier(request: Request) -> Reply:
        results = request.tool_results()
        return say(results[0].text) if results else call("deliver", parcel="a letter")

    (tmp_path / "courier.toml").write_text(COURIER)
    with ScriptedModel(courier) as model:
        worker_pool.environment |= model.environ
        worker = worker_pool.start_worker(1)
        worker.wait_until_ready()
        root = launch_root(store, load(tmp_path / "courier.toml"), "deliver")
        waker(store.url, store.prefix)(root.id)
        wait_until(lambda: "ended by SIGKILL" in worker.log, PATIENCE_S, "the death of the worker's child")
        faults.note("worker killed")
        wait_until(lambda: store.tree(root.id).live == 0, PATIENCE_S, "the end of the agent")

    answer = store.run(process_records.answer_of(store.prefix, root.id))
    assert (tmp_path / "delivered").read_text() == "a letter\n"
    assert 'type="unknown_outcome"' in answer.text
    assert "outcome unknown: this call of deliver" in answer.text
    assert (answer.record.state, answer.record.losses) == ("exited", 1)
