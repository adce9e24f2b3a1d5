"""Workers that die at any moment: the work is done all the same, once, and nothing is lost."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fdstore.client import Store
from fdstore.records import ENDED
from fdstore.store import processes
from fdstore.testing import ScriptedModel
from tests.chaos.crew import Crew
from tests.chaos.family import PROCESSES, TURNS, Family, right_answer
from tests.chaos.history import Observer, check_lives
from tests.chaos.waiting import wait_until

KILLS = 8
LONGEST_PAUSE_S = 1.5
LONGEST_RUN_S = 60


def test_a_tree_whose_workers_are_killed_comes_to_the_same_end(
    seed: int,
    store: Store,
    crew: Crew,
    tmp_path: Path,
    execute: Callable[..., Any],
    assert_counted: Callable[..., None],
) -> None:
    chance = random.Random(seed)
    family = Family(tmp_path, pace_s=0.25)
    with ScriptedModel(family.script) as model:
        crew.environment |= model.environ
        for _ in range(2):
            crew.hire().wait_until_ready()
        root = family.launch(store)
        with Observer(store, root.id) as observer:
            for _ in range(KILLS):
                threading.Event().wait(chance.uniform(0, LONGEST_PAUSE_S))
                if store.run(processes.record(store.prefix, root.id)).state in ENDED:
                    break
                crew.kill_one(chance)
            wait_until(lambda: store.tree(root.id).live == 0, LONGEST_RUN_S, "the end of the tree")

    members = store.tree(root.id).members
    assert len(members) == PROCESSES, members
    check_lives(store, members, TURNS)
    assert store.run(processes.answer_of(store.prefix, root.id)).text == right_answer()
    observer.check_nothing_lost(root.id)
    assert_counted(execute)
