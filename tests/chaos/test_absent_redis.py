"""A Redis outage longer than a lease: live holders continue, and only processes of dead workers are lost.

The times are a tenth of the real ones, or longer where a busy machine must not look like a dead worker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ResponseError

from fdstore.agents.runtime import claim
from fdstore.agents.runtime.claim import Lease
from fdstore.client import Store
from fdstore.errors import StoreUnavailable
from fdstore.local.redis_server import PrivateServer
from fdstore.model.lifecycle import ENDED
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import leases, processes
from fdstore.testing import call, say
from fdstore.wire import retry
from fdstore_workers.sweeper import Sweeper
from tests.chaos.agent_tree import PROCESSES, AgentTree
from tests.chaos.agents import has_ended, record_of
from tests.chaos.conftest import Faults
from tests.chaos.fatal import FatalRunner, Send
from tests.chaos.history import check_tree
from tests.chaos.proxy import count_complete
from tests.chaos.worker_pool import WorkerPool
from tests.on_redis.running_agents import Agents, running, tool
from tests.outages import stopped
from tests.thorough import thorough
from tests.waiting import PATIENCE_S, stretched, wait_until

FASTER = max(4 / stretched(1), 1.0)


def hasten(monkeypatch: pytest.MonkeyPatch, faster: float) -> None:
    """Divide the lease times of this process as in quick workers."""
    for module, name in (
        *((leases, name) for name in ("LEASE_S", "RENEW_EVERY_S", "SWEEP_EVERY_S", "WAKE_AGAIN_S")),
        (claim, "POLL_S"),
        (retry, "DEADLINE_S"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name) / faster)
    monkeypatch.setattr(retry, "PAUSES_S", tuple(pause_s / faster for pause_s in retry.PAUSES_S))


@pytest.fixture
def sweepers(store: Store) -> Iterator[Callable[[], Sweeper]]:
    """`sweepers()` starts a sweeper."""
    started: list[Sweeper] = []

    def start() -> Sweeper:
        started.append(Sweeper(store, f"sweeper-{len(started)}", lambda process: None))
        started[-1].start()
        return started[-1]

    yield start
    for sweeper in started:
        sweeper.stop()


def claimed(store: Store, parent: ProcessHandle) -> ProcessHandle:
    child = store.run(processes.create_child(parent, [], state="ready"))
    claim = store.run(leases.claim(child.keys, "holder"))
    assert claim
    return ProcessHandle(child.keys, child.limits, claim.attempt)


@pytest.mark.thorough("another lease that ends")
@pytest.mark.parametrize(
    "how", ["killed, and who swept too", *thorough("weaker outages", "killed", "stopped")]
)
def test_after_a_redis_outage_only_processes_of_dead_workers_count_as_lost(
    how: str,
    server: PrivateServer,
    store: Store,
    sweepers: Callable[[], Sweeper],
    faults: Faults,
    execute: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hasten(monkeypatch, FASTER)
    sweeper = sweepers()
    wait_until(lambda: execute("EXISTS", "fdstore:sweeper"), what="the first sweep")
    root = store.process("t").handle
    alive, dead = claimed(store, root), claimed(store, root)

    with Lease(store, alive, threading.Event(), lambda process: None).kept():
        if how == "stopped":
            with stopped(server):
                threading.Event().wait(1.5 * leases.LEASE_S)
        else:
            server.kill()
            threading.Event().wait(1.5 * leases.LEASE_S)
            if "swept" in how:
                sweeper.stop()
            server.restart()
            if "swept" in how:
                sweepers()
        faults.note(f"redis {how}")

        wait_until(lambda: record_of(store, dead.id).losses == 1)
        found = record_of(store, alive.id)
        assert (found.state, found.attempt, found.losses) == ("running", 1, 0)


@pytest.mark.thorough("a shorter outage is tested")
def test_a_redis_outage_longer_than_a_lease_counts_as_no_loss_for_running_agents(
    server: PrivateServer, store: Store, worker_pool: WorkerPool, tmp_path: Path, faults: Faults
) -> None:
    agent_tree = AgentTree(tmp_path, pace_s=0.3)
    with worker_pool.scripted(agent_tree.script, CHAOS_FASTER=str(FASTER)) as model:
        workers = worker_pool.start_ready(2, pool="prefork")
        root = agent_tree.launch(store)
        for requests in (1, 4):
            model.wait_for(requests, PATIENCE_S)
            server.kill()
            faults.note("redis away for longer than a lease")
            threading.Event().wait(1.6 * leases.LEASE_S / FASTER)
            server.restart()
        wait_until(lambda: has_ended(store, root.id), what="the end of the root")

    assert all(worker.is_alive for worker in workers), worker_pool.logs()
    assert [member.losses for member in check_tree(store, root)] == [0] * PROCESSES, worker_pool.logs()


# one attempt, and Redis killed at each of its requests


class KillingRunner(FatalRunner):
    """A runner whose Redis dies at the n-th request of the thread that made it, and comes back later.

    before   the request was not received
    after    it was executed, and its replies are lost
    """

    def __init__(self, server: PrivateServer, number: int, moment: str, away_s: float) -> None:
        super().__init__(server.url, number)
        self.killed = False
        self._server = server
        self._moment = moment
        self._return = threading.Timer(away_s, server.restart)
        self._thread = threading.get_ident()

    def close(self) -> None:
        super().close()
        if self.killed:
            self._return.join()

    def counts(self) -> bool:
        return threading.get_ident() == self._thread

    def inject_fault(self, link: Any, send: Send, request: bytes) -> None:
        if self._moment == "after":
            send(request)
            with suppress(ResponseError):
                link.receive([], count_complete(request)[0])
        self._server.kill()
        self.killed = True
        self._return.start()
        if self._moment == "before":
            send(request)


def run_until_ended(agents: Agents, store: Store) -> None:
    """Run attempts until the process ends, as workers do."""
    while agents.record().state not in ENDED:
        wait_until(lambda: agents.record().state == "ready", what="an attempt")
        with suppress(StoreUnavailable):  # it was not claimed
            agents.attempt("solo", store)


@pytest.mark.thorough("other moments of the same failure")
@pytest.mark.parametrize("moment", ["before", *thorough("the other moment", "after")])
@pytest.mark.parametrize("at_most", [3, pytest.param(1000, marks=pytest.mark.long)])
def test_killing_redis_at_any_request_of_an_attempt_does_not_count_as_a_loss(
    at_most: int,
    moment: str,
    server: PrivateServer,
    store: Store,
    sweepers: Callable[[], Sweeper],
    tmp_path: Path,
    faults: Faults,
    execute: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hasten(monkeypatch, 8)
    sweepers()
    turns = [call("lines", count=3000), call("echo", words="b"), say("Done.")]

    for number in range(1, at_most + 1):
        execute("FLUSHALL")
        killing = KillingRunner(server, number, moment, 1.3 * leases.LEASE_S)
        with (
            running(store, lambda request: turns[request.turn_number], tmp_path) as agents,
            Store(killing, "fdstore", server.url) as dying,
        ):
            agents.launch(tools=("read_fd",), python=(tool("lines"), tool("echo")))
            run_until_ended(agents, dying)
            record, answer = agents.record(), agents.answer()
            sources = [d.source for d in store.process("solo").list()]

        assert (record.state, record.losses) == ("exited", 0), f"request {number}"
        assert (answer, sources) == ("Done.", ["lines"]), f"request {number}"
        if not killing.killed:
            break
        faults.note(f"redis killed {moment} a request")
