"""Workers that die at any moment: the work is still done exactly once, and nothing is lost."""

from __future__ import annotations

import random
import threading
from pathlib import Path

from fdstore.client import Store
from fdstore.testing import Reply, Request, call, say
from tests.chaos.agent_tree import AgentTree
from tests.chaos.agents import answer_of, launch, write_program
from tests.chaos.conftest import Faults
from tests.chaos.history import Observer, Takeovers, check_tree
from tests.chaos.worker_pool import WorkerPool
from tests.dialects import every_dialect
from tests.waiting import PATIENCE_S, wait_until

KILLS = 3
LONGEST_PAUSE_S = 1.0


@every_dialect
def test_a_tree_whose_workers_are_killed_gives_the_same_answer(
    seed: int, store: Store, worker_pool: WorkerPool, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    agent_tree = AgentTree(tmp_path, pace_s=0.25)
    with worker_pool.scripted(agent_tree.script):
        worker_pool.start_ready(KILLS + 1)
        root = agent_tree.launch(store)
        observer, takeovers = Observer(store, root.id), Takeovers(store)
        with observer.watch(), takeovers.record():
            for _ in range(KILLS):
                threading.Event().wait(rng.uniform(0, LONGEST_PAUSE_S))
                takeovers.expect(worker_pool.kill_one(store, [root.id], rng))
            wait_until(lambda: store.tree(root.id).live == 0, PATIENCE_S, "the end of the tree")

    print(takeovers)
    check_tree(store, root)
    observer.check_nothing_lost(root.id)


@every_dialect
def test_a_tool_that_must_not_repeat_runs_once_even_if_its_worker_dies_during_the_call(
    store: Store, worker_pool: WorkerPool, tmp_path: Path, faults: Faults
) -> None:
    def courier(request: Request) -> Reply:
        results = request.tool_results()
        return say(results[0].text) if results else call("deliver", parcel="a letter")

    program = write_program(tmp_path, "courier", '[tools]\npython = ["agent_tools:deliver"]\n')
    with worker_pool.scripted(courier):
        worker = worker_pool.start_worker(1).wait_until_ready()
        root = launch(store, program, "deliver")
        wait_until(lambda: "ended by SIGKILL" in worker.log, PATIENCE_S, "the death of the worker's child")
        faults.note("worker killed")
        wait_until(lambda: store.tree(root.id).live == 0, PATIENCE_S, "the end of the agent")

    answer = answer_of(store, root.id)
    assert (tmp_path / "delivered").read_text() == "a letter\n"
    assert 'type="unknown_outcome"' in answer.text
    assert "outcome unknown: this call of deliver" in answer.text
    assert (answer.record.state, answer.record.losses) == ("exited", 1)
