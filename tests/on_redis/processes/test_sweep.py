"""The sweep: lost processes are made ready or failed, and ready ones are woken again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fdstore.agents.loop.program_loader import Limits
from fdstore.client import Store
from fdstore.store.clock import redis_now
from fdstore.store.keys import ProcessKeys, process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import asks, leases
from fdstore.store.processes.process_records import TreeHoldings
from fdstore.store.views import worker_registry
from fdstore.testing import call, say
from fdstore.wire.operation import Operation
from fdstore_workers.supervisor import HeldProcess
from fdstore_workers.sweeper import sweep
from fdstore_workers.worker import release_held
from tests.on_redis.running_agents import READER, Agents, running

Execute = Callable[..., Any]


def test_a_sweep_skips_trees_whose_processes_have_all_ended(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        store.process("ended").end()
        store.process("open")
        over: dict[str, TreeHoldings] = {}

        sweep(store, agents.woken.append, over=over)
        assert set(over) == {"ended"}

        agents.expire("solo")
        assert sweep(store, agents.woken.append, over=over).processes == 1
        assert agents.woken == ["solo"]


def lose_by_lease(store: Store, agents: Agents, process: str = "solo") -> None:
    """Claim the process for a worker whose machine then dies, and sweep."""
    store.run(leases.claim(process_keys("fdstore", process), "a"))
    agents.expire(process)
    sweep(store, agents.woken.append)


def test_a_process_whose_machines_die_is_made_ready_each_time(store: Store, tmp_path: Path) -> None:
    """Regression test: the third loss failed it as poison, although it had killed nothing."""
    with running(store, [], tmp_path) as agents:
        agents.launch(limits=Limits(max_losses=1))

        for _ in range(5):
            lose_by_lease(store, agents)

        assert (agents.record().state, agents.record().losses) == ("ready", 5)
        assert agents.woken == ["solo"] * 5


def test_a_process_lost_at_one_point_ten_times_as_often_as_it_may_crash_is_poison(
    store: Store, tmp_path: Path, execute: Execute
) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch(limits=Limits(max_losses=2))
        for _ in range(19):
            lose_by_lease(store, agents)
        execute("RPUSH", "fdstore:{solo}:solo:journal", "{}")  # it got further
        for _ in range(19):
            lose_by_lease(store, agents)
        assert agents.record().state == "ready"

        lose_by_lease(store, agents)

        assert (agents.record().state, agents.record().reason) == ("failed", "poison")


def test_a_parent_gets_the_failure_of_a_child_that_was_lost_too_often(store: Store, tmp_path: Path) -> None:
    script = {"SOLO": [call("spawn", program_name="reader", query="Read."), say("Done.")]}

    with running(store, script, tmp_path) as agents:
        reader = msgspec.structs.replace(READER, limits=Limits(max_losses=1))
        agents.launch(tools=("spawn",), others=[reader])
        agents.attempt("solo")
        for _ in range(10):
            lose_by_lease(store, agents, "solo.1")

        assert agents.record("solo.1").state == "failed"
        assert agents.woken[-1] == "solo"
        assert agents.attempt("solo") == "ended"
        [result] = agents.results()
        assert result.is_error
        assert 'reason="poison"' in result.content


@pytest.mark.parametrize(("allowed", "state"), [(1, "failed"), (2, "ready")])
def test_a_lane_of_questions_may_crash_as_many_workers_as_the_process_that_asks(
    store: Store, tmp_path: Path, allowed: int, state: str
) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch(limits=Limits(max_losses=allowed))
        claimed = store.run(leases.claim(process_keys("fdstore", "solo"), "a"))
        assert isinstance(claimed, leases.Claim)
        asking = ProcessHandle(process_keys("fdstore", "solo"), claimed.limits, claimed.attempt)
        question = asks.Ask(number=0, question="Which dates occur?")
        [lane] = store.run(asks.start(asking, "call", [question], asks.AskSettings(model="scripted")))
        store.run(leases.claim(process_keys("fdstore", lane), "a", "claim-1"))

        release_held(store, agents.woken.append, [HeldProcess(1, lane, "claim-1")])

        assert agents.record(lane).state == state


def test_the_sweep_wakes_a_ready_process_periodically(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        agents.expire("solo")

        sweep(store, agents.woken.append)
        sweep(store, agents.woken.append)

        assert agents.woken == ["solo"]


def test_the_sweep_ignores_processes_that_run_wait_or_have_ended(store: Store, tmp_path: Path) -> None:
    script = {
        "SOLO": [call("spawn", program_name="reader", query="Read."), say("Done.")],
        "READER": [say("Read.")],
    }

    with running(store, script, tmp_path) as agents:
        agents.launch(tools=("spawn",), others=[READER])
        agents.attempt("solo")
        store.run(leases.claim(process_keys("fdstore", "solo.1"), "a"))
        agents.woken.clear()

        assert sweep(store, agents.woken.append).processes == 0

        agents.lose("solo.1")
        agents.run_all("solo")
        agents.woken.clear()
        assert sweep(store, agents.woken.append).processes == 0
        assert agents.woken == []


def test_the_sweep_counts_no_loss_for_a_process_claimed_after_it_looked(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        moment = store.run(redis_now())
        keys = process_keys("fdstore", "solo")
        store.run(leases.claim(keys, "a"))
        store.run(set_lease(keys, moment + 0.000001))  # expired, as after an outage of Redis

        assert store.run(leases.check_overdue(keys, moment=moment)).decision == "nothing"
        assert agents.record().losses == 0
        assert store.run(leases.check_overdue(keys)).decision == "wake"
        assert agents.record().losses == 1


def set_lease(keys: ProcessKeys, until: float) -> Operation[None]:
    yield [("HSET", keys.record, "lease_until", f"{until:.6f}")]


def test_one_worker_keeps_the_sweep_as_long_as_it_renews_it(store: Store, execute: Execute) -> None:
    first, again, other = (store.run(worker_registry.acquire_sweep("fdstore", name, 5)) for name in "aab")
    assert (first, again) == (0, 0)
    assert 0 < other <= 5  # so long another one waits
    execute("DEL", "fdstore:sweeper")
    assert store.run(worker_registry.acquire_sweep("fdstore", "b", 5)) == 0
