"""A fleet whose workers are all killed from outside every few seconds: no agent fails because of it, and each
is taken over soon."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from fdstore.client import Store
from fdstore.model.records import ProcessRecord
from fdstore.store.processes import leases
from fdstore.testing import Reply, Request, call, say, slow, turn
from tests.chaos.agents import launch, write_program
from tests.chaos.conftest import Faults
from tests.chaos.history import Takeovers
from tests.chaos.worker_pool import Worker, WorkerPool
from tests.conftest import children_of
from tests.dialects import every_dialect
from tests.waiting import wait_until

WORKERS = 3
SLOTS = 4
PATIENCE_S = 120
TOOLS = '[tools]\nenabled = ["list_fds", "spawn"]\n'


class Storm(NamedTuple):
    """Agents, and kills of workers that run one, at least `every_s` apart. `quick`: with short leases.

    With more than two kills for each agent, one of them is lost for the third time.
    """

    leaves: int
    kills: int
    every_s: float
    quick: bool


def kill_oldest(store: Store, tree: str, fleet: Worker) -> list[ProcessRecord]:
    """Kill the oldest worker that runs agents, when there is one, and return the records of those agents."""
    running: dict[str, list[ProcessRecord]] = {}
    busy: list[int] = []

    def found() -> bool:
        running.clear()
        for member in store.tree(tree).members:
            if member.state == "running" and member.worker:
                running.setdefault(member.worker, []).append(member)
        busy[:] = [pid for pid in children_of(fleet.pid) if name_of(pid, running) is not None]
        return bool(busy)

    wait_until(found, PATIENCE_S, "a worker that runs an agent")
    os.kill(busy[0], signal.SIGKILL)
    return running[name_of(busy[0], running) or ""]


def name_of(pid: int, workers: Iterable[str]) -> str | None:
    begin = f"{socket.gethostname()}:{pid}-"
    return next((name for name in workers if name.startswith(begin)), None)


@every_dialect
@pytest.mark.timeout(4 * PATIENCE_S)
@pytest.mark.parametrize(
    "storm",
    [
        pytest.param(Storm(leaves=3, kills=7, every_s=0.5, quick=True), id="short"),
        pytest.param(
            Storm(leaves=9, kills=20, every_s=3, quick=False), id="real-times", marks=pytest.mark.long
        ),
    ],
)
def test_no_agent_fails_because_workers_are_killed_from_outside(
    seed: int, storm: Storm, store: Store, worker_pool: WorkerPool, tmp_path: Path, faults: Faults
) -> None:
    rng = random.Random(seed)
    is_over = threading.Event()

    def root(request: Request) -> Reply:
        if request.turn_number == 0:
            return turn(*(call("spawn", program_name="leaf", query=f"leaf {n}") for n in range(storm.leaves)))
        return say("all done")

    def leaf(request: Request) -> Reply:
        return say("done") if is_over.is_set() else slow(call("list_fds"), storm.every_s / 2)

    program = write_program(tmp_path, "root", TOOLS + '[linked_programs]\nleaf = "leaf.toml"\n')
    write_program(tmp_path, "leaf", TOOLS + "[limits]\nmax_turns = 10000\n")
    with worker_pool.scripted({"You are ROOT": root, "You are LEAF": leaf}):
        fleet = worker_pool.start_fleet(WORKERS, SLOTS, quick=storm.quick)
        wait_until(lambda: fleet.log.count(" ready: ") == WORKERS, what="the start of the workers")
        tree = launch(store, program, "spawn them").id
        wait_until(lambda: len(store.tree(tree).members) == storm.leaves + 1, what="the leaves")
        takeovers = Takeovers(store)
        with takeovers.record():
            for _ in range(storm.kills):
                threading.Event().wait(storm.every_s * rng.uniform(0.8, 1.2))
                takeovers.expect(kill_oldest(store, tree, fleet))
                faults.note("worker killed")
            is_over.set()
            wait_until(lambda: store.tree(tree).live == 0, PATIENCE_S, "the end of the tree")

    members = store.tree(tree).members
    lost = [each.losses for each in members]
    print(f"{sum(lost)} losses, at most {max(lost)} of one agent; {takeovers}")
    assert [(each.id, each.state, each.reason) for each in members if each.exit_code != 0] == []
    if not storm.quick:
        assert max(takeovers.durations_s) <= 2 * leases.LEASE_S
