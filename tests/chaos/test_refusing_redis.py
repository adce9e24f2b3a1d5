"""A Redis that refuses for longer than a lease, and for longer than any call waits: what runs goes on after
it, what has ended is written as it ended, and its worker says so once."""

from __future__ import annotations

import re

import pytest

from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.store.processes import leases
from fdstore.toolset._sync import Toolset
from fdstore_workers.app import CHECK_EVERY_S
from tests.chaos.agents import has_ended, record_of
from tests.chaos.conftest import Faults
from tests.chaos.test_absent_redis import FASTER
from tests.chaos.worker_pool import WorkerPool
from tests.elements import only
from tests.refusals import lasting, refused
from tests.thorough import thorough
from tests.waiting import wait_until

LASTS_S = max(3 * leases.LEASE_S / FASTER, 2 * CHECK_EVERY_S + 2)
"""Longer than a lease and the deadline of a call in a row, and than kombu waits for a reply, which a server
that is busy with a script does not give."""

SCRIPT = "echo first; sleep 1; echo last; exit 3"


@pytest.mark.parametrize(
    "kind", ["NOREPLICAS", *thorough("other kinds", "OOM", "READONLY", "MISCONF", "BUSY")]
)
def test_a_pipeline_that_ends_during_a_refusal_has_ended_as_it_did(
    kind: str, server: PrivateServer, store: Store, worker_pool: WorkerPool, faults: Faults
) -> None:
    proc = store.process("t")
    tools = Toolset(proc, enabled=["pipe"], commands=["sh"])
    worker_pool.environment["CHAOS_FASTER"] = str(FASTER)
    worker_pool.start_ready(2)
    started = only(tools.call("pipe", {"commands": [f"sh -c '{SCRIPT}'"]}).content)
    wait_until(lambda: proc.stat(started["fd"]).chars, what="the first line")

    with refused(server, kind):
        faults.note(kind)
        lasting(LASTS_S)

    wait_until(lambda: has_ended(store, started["process"]), what="the end")
    record, output = record_of(store, started["process"]), proc.read(started["fd"])
    assert (record.state, record.exit_code, record.reason, record.losses) == ("exited", 3, None, 0)
    assert (output.text, output.eof, output.exit_code) == ("first\nlast\n", True, 3)
    assert_said_once(worker_pool)


@pytest.mark.thorough("ten seconds of waiting")
@pytest.mark.parametrize(
    "kind", ["READONLY", *thorough("other kinds", "NOREPLICAS", "OOM", "MISCONF", "BUSY")]
)
def test_an_idle_worker_says_once_that_it_waits_and_once_that_it_goes_on(
    kind: str, server: PrivateServer, store: Store, worker_pool: WorkerPool, faults: Faults
) -> None:
    worker_pool.environment["CHAOS_FASTER"] = str(FASTER)
    worker_pool.start_ready(1)

    with refused(server, kind):
        faults.note(kind)
        lasting(LASTS_S)

    wait_until(lambda: "no longer, after" in worker_pool.logs(), what="the end of the wait")
    assert_said_once(worker_pool)


def assert_said_once(worker_pool: WorkerPool) -> None:
    """Assert that no worker said anything twice, nor showed a traceback."""
    assert "Traceback" not in worker_pool.logs(), worker_pool.logs()
    for worker in worker_pool.alive:
        lines = [re.sub(r"^\S+ \S+ ", "", line) for line in worker.log.splitlines()]
        said = [
            line.partition(": ")[2][:40] for line in lines if " WARNING " in f" {line}" or "ERROR" in line
        ]
        assert len(said) == len(set(said)), worker.log
        assert len(said) < 10, worker.log
