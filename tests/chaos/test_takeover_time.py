"""The time until the work of a dead worker is taken over, with the real lease times: at most 15 seconds."""

from __future__ import annotations

import random
import statistics
import threading
import time
from pathlib import Path

import pytest

from fdstore.client import Store
from fdstore.testing import Reply, Request, say, slow
from tests.chaos.agents import launch, record_of, write_program
from tests.chaos.conftest import Faults
from tests.chaos.worker_pool import WorkerPool
from tests.waiting import stretched, wait_until

VICTIMS = 4
KILLS_OF_A_CHILD = 12
LONGEST_S = 15.0


def slow_first_requests() -> tuple[list[str], object]:
    """Return the list of agents that asked, and a script that never answers an agent's first request."""
    asked: list[str] = []

    def reply(request: Request) -> Reply:
        agent = str(request.messages[0]["content"])
        asked.append(agent)
        return say("done") if asked.count(agent) > 1 else slow(say("never"), 3600)

    return asked, reply


@pytest.mark.long
def test_work_of_a_dead_child_is_taken_over_within_a_median_of_two_seconds(
    store: Store, worker_pool: WorkerPool, tmp_path: Path, faults: Faults
) -> None:
    program = write_program(tmp_path, "waiting")
    asked, script = slow_first_requests()
    took_s = []
    with worker_pool.scripted(script):
        worker = worker_pool.start_worker(1, quick=False).wait_until_ready()
        for number in range(KILLS_OF_A_CHILD):
            root = launch(store, program, f"agent {number}").id
            wait_until(lambda number=number: f"agent {number}" in asked, what="the first request")
            worker.kill_child()
            killed_at = time.monotonic()
            faults.note("child of a worker killed")
            wait_until(
                lambda root=root: record_of(store, root).attempt > 1,
                what="the takeover",
            )
            took_s.append(time.monotonic() - killed_at)
            wait_until(lambda root=root: store.tree(root).live == 0)
            assert record_of(store, root).losses == 1
        assert worker.log.count("ended by SIGKILL: 1 of the 1 processes") == KILLS_OF_A_CHILD

    print(f"from kill to takeover: median {statistics.median(took_s):.2f} s, worst {max(took_s):.2f} s")
    assert statistics.median(took_s) <= 2


@pytest.mark.long
def test_a_dead_worker_is_replaced_within_15_seconds(
    store: Store, worker_pool: WorkerPool, tmp_path: Path, faults: Faults
) -> None:
    rng = random.Random(1)
    program = write_program(tmp_path, "waiting")
    asked, script = slow_first_requests()
    with worker_pool.scripted(script):
        victims = worker_pool.start_ready(VICTIMS, 1, quick=False)
        roots = [launch(store, program, f"agent {number}").id for number in range(VICTIMS)]
        wait_until(lambda: len(asked) == VICTIMS, what="the first requests")
        worker_pool.start_worker(VICTIMS, quick=False).wait_until_ready()
        killed_at = {}
        for victim in victims:
            threading.Event().wait(rng.uniform(0, 1.5))
            [its] = [each for each in roots if f":{victim.pid}-" in (record_of(store, each).worker or "")]
            victim.kill()
            killed_at[its] = time.monotonic()
            faults.note("worker killed")
        took_s: dict[str, float] = {}

        def all_taken_over() -> bool:
            for root in roots:
                if root not in took_s and record_of(store, root).attempt > 1:
                    took_s[root] = time.monotonic() - killed_at[root]
            return len(took_s) == VICTIMS

        wait_until(all_taken_over, what="the takeover of all")
        wait_until(lambda: all(store.tree(root).live == 0 for root in roots))

    times = sorted(took_s.values())
    print(f"from kill to takeover: median {statistics.median(times):.1f} s, worst {times[-1]:.1f} s")
    assert times[-1] <= stretched(LONGEST_S)
    for root in roots:
        record = record_of(store, root)
        assert (record.state, record.losses) == ("exited", 1)
