"""A Redis that is killed and restarted: acknowledged writes are kept, and clients and agents continue."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

import fdstore
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.testing import say
from tests.chaos.agent_tree import AgentTree
from tests.chaos.agents import has_ended, launch, write_program
from tests.chaos.conftest import Faults
from tests.chaos.history import Observer, check_tree
from tests.chaos.worker_pool import WorkerPool
from tests.waiting import PATIENCE_S, stretched, wait_until

RESTARTS = 4
CLIENTS = 2
GOES_ON_WITHIN_S = 10.0
PACE_S = 0.01
"""A client waits so long after each text: as fast as it can, it would keep a processor busy."""
NEW_PROCESSES = 3


class Client:
    """A thread that creates and reads texts until it is stopped, and records acknowledged ones."""

    def __init__(self, url: str, number: int, stop: threading.Event) -> None:
        self._url = url
        self._number = number
        self.process = f"client-{number}"
        self._stop = stop
        self.acknowledged: dict[str, str] = {}
        self.moments: list[float] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            with fdstore.connect(self._url) as store:
                proc = store.process(self.process)
                while not self._stop.wait(PACE_S):
                    text = f"{self._number}/{len(self.acknowledged)}\n" * 2000
                    made = proc.create(text)
                    assert made.fd not in self.acknowledged
                    self.acknowledged[made.fd] = text
                    self.moments.append(time.monotonic())
                    assert proc.read(made.fd, read_all=True).text == text
        except BaseException as error:
            self.error = error
            raise

    def end(self) -> None:
        self._thread.join(PATIENCE_S)
        if self.error:
            raise self.error


def restart(server: PrivateServer, faults: Faults) -> float:
    """Kill the server, start it again, and return the time at which it was available."""
    server.kill()
    faults.note("redis killed")
    server.restart()
    return time.monotonic()


@pytest.mark.thorough("a restart under load")
def test_a_restart_loses_no_acknowledged_text_and_clients_and_agents_continue(
    seed: int, server: PrivateServer, store: Store, worker_pool: WorkerPool, tmp_path: Path, faults: Faults
) -> None:
    rng = random.Random(seed)
    agent_tree = AgentTree(tmp_path, pace_s=0.3)
    stop = threading.Event()
    back_at = []
    with worker_pool.scripted(agent_tree.script):
        worker = worker_pool.start_worker(4).wait_until_ready()
        clients = [Client(server.url, number, stop) for number in range(CLIENTS)]
        root = agent_tree.launch(store)
        observer = Observer(store, root.id)
        with observer.watch():
            for _ in range(RESTARTS):
                threading.Event().wait(rng.uniform(0, 0.8))
                back_at.append(restart(server, faults))
            wait_until(lambda: has_ended(store, root.id), what="the end of the root")
        stop.set()
        for client in clients:
            client.end()

    assert worker.is_alive, worker.log
    went_on_s = max(
        min(moment for moment in client.moments if moment > back) - back
        for client in clients
        for back in back_at
    )
    print(f"after a restart every client had its next answer within {went_on_s:.2f} s")
    assert went_on_s < stretched(GOES_ON_WITHIN_S)
    for client in clients:
        proc = store.process(client.process)
        assert {listed.fd for listed in proc.list()} == set(client.acknowledged)
        for fd, text in client.acknowledged.items():
            assert proc.read(fd, read_all=True).text == text
    check_tree(store, root)
    observer.check_nothing_lost(root.id)


@pytest.mark.thorough("the test above restarts Redis under workers too")
def test_a_worker_claims_new_processes_within_ten_seconds_of_a_redis_restart(
    server: PrivateServer, store: Store, worker_pool: WorkerPool, tmp_path: Path, faults: Faults
) -> None:
    program = write_program(tmp_path, "new")
    with worker_pool.scripted(lambda request: say("done")):
        worker = worker_pool.start_worker(2).wait_until_ready()
        for number in range(NEW_PROCESSES):
            back = restart(server, faults)
            root = launch(store, program, "go on", f"new-{number}").id

            wait_until(
                lambda root=root: has_ended(store, root),
                stretched(GOES_ON_WITHIN_S),
                "the end of an agent launched after a restart",
            )
            print(f"ended {time.monotonic() - back:.1f} s after the restart")

    assert worker.is_alive, worker.log
