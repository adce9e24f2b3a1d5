"""Hours of work in which workers are killed all the time: every tree ends with the right answer, and the
workers that live on take no more memory, threads and file descriptors than they did at first.

    SOAK_S=3600 pytest -m long tests/chaos/test_soak.py -s       an hour; usually a minute
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from fdstore.bench.fresh_trees import drop_with_numbers
from fdstore.client import Process, Store
from tests.chaos.agent_tree import PROCESSES, AgentTree
from tests.chaos.conftest import Execute, Faults
from tests.chaos.history import check_tree
from tests.chaos.worker_pool import WorkerPool
from tests.conftest import children_of
from tests.waiting import PATIENCE_S, wait_until

SOAK_S = float(os.environ.get("SOAK_S", "60"))
MORTAL, STEADY = 2, 2
"""Workers that are killed in turn and replaced, and workers that live from the first to the last minute."""

TREES_AT_ONCE = 4
KILL_EVERY_S = 7.0
LOOK_EVERY_S = 1.0
MORE_BYTES = 16_000_000
"""By how much a worker may grow between the second quarter of the time and the last: by what its allocator
does not return."""


class Use(NamedTuple):
    """The resources that processes use together."""

    bytes: int
    threads: int
    files: int


def use_of(pids: Sequence[int]) -> Use:
    total = Use(0, 0, 0)
    for pid in pids:
        said = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        here = Use(
            1024 * int(said["VmRSS"].split()[0]), int(said["Threads"]), len(os.listdir(f"/proc/{pid}/fd"))
        )
        total = Use(*map(sum, zip(total, here, strict=True)))
    return total


def usual(samples: list[Use]) -> Use:
    return Use(*(int(median(column)) for column in zip(*samples, strict=True)))


class Trees:
    """Trees of agents, always the same number: one that has ended is checked, removed and replaced."""

    def __init__(self, store: Store, agent_tree: AgentTree) -> None:
        self._store, self._agent_tree = store, agent_tree
        self._live: list[Process] = []
        self.ended = self.losses = 0

    def refill(self) -> None:
        while len(self._live) < TREES_AT_ONCE:
            self._live.append(self._agent_tree.launch(self._store))

    def take_ended(self) -> bool:
        """Check and remove the trees that have ended. Return whether none is left."""
        for root in [each for each in self._live if self._store.tree(each.id).live == 0]:
            self._live.remove(root)
            members = check_tree(self._store, root)
            self.ended += 1
            self.losses += sum(member.losses for member in members)
            drop_with_numbers(self._store, root.id)
        return not self._live


@pytest.mark.long
@pytest.mark.timeout(SOAK_S + 4 * PATIENCE_S)
def test_workers_that_live_on_while_others_are_killed_use_no_more_than_at_first(
    seed: int, store: Store, worker_pool: WorkerPool, tmp_path: Path, faults: Faults, execute: Execute
) -> None:
    rng = random.Random(seed)
    agent_tree = AgentTree(tmp_path, pace_s=0.5)
    samples: list[list[Use]] = [[] for _ in range(STEADY)]
    stored: list[int] = []
    with worker_pool.scripted(agent_tree.script):
        steady, mortal = (worker_pool.start_ready(count, 4) for count in (STEADY, MORTAL))
        # the first; a process that may have killed a worker is run in another
        children = [children_of(worker.pid)[0] for worker in steady]
        trees = Trees(store, agent_tree)
        began = time.monotonic()
        kill_at = KILL_EVERY_S
        while (passed_s := time.monotonic() - began) < SOAK_S:
            trees.take_ended()
            trees.refill()
            if passed_s > kill_at:
                kill_at += KILL_EVERY_S * rng.uniform(0.5, 1.5)
                victim = mortal.pop(rng.randrange(MORTAL))
                victim.kill()
                mortal.append(worker_pool.start_worker(4))
                faults.note("worker killed")
            for worker, child, kept in zip(steady, children, samples, strict=True):
                assert child in children_of(worker.pid), worker.log[-5000:]
                kept.append(use_of((worker.pid, child)))
            stored.append(int(execute("INFO", "memory").split(b"used_memory:")[1].split()[0]))
            threading.Event().wait(LOOK_EVERY_S)
        wait_until(trees.take_ended, what="the end of the last trees")

    quarter = len(stored) // 4
    grown = [(usual(each[quarter : 2 * quarter]), usual(each[-quarter:])) for each in samples]
    print(f"{PROCESSES * trees.ended} agents in {trees.ended} trees; {trees.losses} losses")
    for before, after in grown:
        print(f"a worker that lived on: {before} in the second quarter, {after} in the last")
    first_mb, last_mb = (median(part) / 1e6 for part in (stored[:quarter], stored[-quarter:]))
    print(f"Redis: {first_mb:.1f} MB in the first quarter, {last_mb:.1f} MB in the last")
    for before, after in grown:
        assert after.bytes < before.bytes + MORE_BYTES
        assert after.threads <= before.threads + 2
        assert after.files <= before.files + 8
