"""Workers that die at any moment: the work is done all the same, once, and nothing is lost."""

from __future__ import annotations

import random
import threading
from pathlib import Path

from fdstore.agent.launch import launch_root
from fdstore.agent.program_loader import load
from fdstore.client import Store
from fdstore.runtime.waker import waker
from fdstore.store import process_records
from fdstore.testing import Reply, Request, ScriptedModel, call, say
from tests.chaos.conftest import Faults
from tests.chaos.crew import Crew
from tests.chaos.family import PROCESSES, TURNS, ProcessSnapshot, right_answer
from tests.chaos.history import Observer, Takeovers, check_lives
from tests.waiting import wait_until

KILLS = 3
LONGEST_PAUSE_S = 1.0
LONGEST_RUN_S = 60


def test_a_tree_whose_workers_are_killed_comes_to_the_same_end(
    seed: int, store: Store, crew: Crew, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    family = ProcessSnapshot(tmp_path, pace_s=0.25)
    with ScriptedModel(family.script) as model:
        crew.environment |= model.environ
        for worker in [crew.hire() for _ in range(KILLS + 1)]:
            worker.wait_until_ready()
        root = family.launch(store)
        observer, takeovers = Observer(store, root.id), Takeovers(store)
        with observer.looking(), takeovers.noted():
            for _ in range(KILLS):
                threading.Event().wait(chance.uniform(0, LONGEST_PAUSE_S))
                takeovers.expect(crew.kill_one(store, [root.id], chance))
            wait_until(lambda: store.tree(root.id).live == 0, LONGEST_RUN_S, "the end of the tree")

    print(takeovers)
    members = store.tree(root.id).members
    assert len(members) == PROCESSES, members
    check_lives(store, members, TURNS)
    assert store.run(process_records.answer_of(store.prefix, root.id)).text == right_answer()
    observer.check_nothing_lost(root.id)


COURIER = """
[model]
name = "scripted"
[prompt]
system = "You are COURIER."
[tools]
python = ["agent_tools:deliver"]
"""


def test_a_tool_that_must_not_be_repeated_runs_once_though_its_worker_dies_in_it(
    store: Store, crew: Crew, tmp_path: Path, faults: Faults
) -> None:
    def courier(request: Request) -> Reply:
        results = request.tool_results()
        return say(results[0].text) if results else call("deliver", parcel="a letter")

    (tmp_path / "courier.toml").write_text(COURIER)
    with ScriptedModel(courier) as model:
        crew.environment |= model.environ
        worker = crew.hire(1)
        worker.wait_until_ready()
        root = launch_root(store, load(tmp_path / "courier.toml"), "deliver")
        waker(store.url, store.prefix)(root.id)
        wait_until(lambda: "ended by SIGKILL" in worker.log, LONGEST_RUN_S, "the death of the worker's child")
        faults.note("worker killed")
        wait_until(lambda: store.tree(root.id).live == 0, LONGEST_RUN_S, "the end of the agent")

    answer = store.run(process_records.answer_of(store.prefix, root.id))
    assert (tmp_path / "delivered").read_text() == "a letter\n"
    assert 'type="unknown_outcome"' in answer.text
    assert "outcome unknown: this call of deliver" in answer.text
    assert (answer.record.state, answer.record.losses) == ("exited", 1)
