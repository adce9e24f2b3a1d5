"""Real worker processes, a real Redis for each test that may be killed, and a second one, the ledger, that
outlives it and records what the tasks did."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest
import redis

import fdstore
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.model.lifecycle import ENDED
from fdstore.testing import ScriptedModel
from tests.with_workers.agent_harness import AgentHarness, open_harness
from tests.with_workers.pipe_bench import Bench
from tests.worker_process import WorkerProcess

ALLOW_ALL = ("--allow-python", "*", "--allow-command", "*", "--preload-root", "/")
"""The options of a worker whose programs may do what they name."""

RECORDING_WORKER = Path(__file__).with_name("recording_worker.py")


class Ledger:
    """The records of the tasks, and the means to release those that wait."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._redis = redis.Redis.from_url(url, decode_responses=True)
        self._redis.flushall()

    @property
    def started_ids(self) -> list[str]:
        return self._redis.lrange("begun", 0, -1)

    @property
    def ended(self) -> list[str]:
        return self._redis.lrange("ended", 0, -1)

    def release(self, process_id: str) -> None:
        self._redis.rpush(f"release:{process_id}", "go")

    def forget(self) -> None:
        self._redis.flushall()

    def close(self) -> None:
        self._redis.close()


StartWorker = Callable[..., WorkerProcess]


@pytest.fixture(scope="session")
def ledger_server() -> Iterator[PrivateServer]:
    with PrivateServer() as server:
        yield server


@pytest.fixture
def ledger(ledger_server: PrivateServer) -> Iterator[Ledger]:
    ledger = Ledger(ledger_server.url)
    yield ledger
    ledger.close()


@pytest.fixture(params=["unix", "tcp"])
def redis_server(request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    """An empty Redis for one test, once on a unix socket and once on TCP."""
    with PrivateServer(port=request.param == "tcp") as server:
        yield server


@pytest.fixture
def durable_server() -> Iterator[PrivateServer]:
    """A Redis on a unix socket that keeps all data after a kill."""
    with PrivateServer({"appendonly": "yes", "appendfsync": "always"}) as server:
        yield server


@pytest.fixture
def start_worker(tmp_path: Path, ledger: Ledger) -> Iterator[StartWorker]:
    """`start_worker(url, pool="threads", concurrency=2, fan_out=False)`: a worker that is ready."""
    started: list[WorkerProcess] = []

    def start(
        url: str, pool: str = "threads", concurrency: int = 2, *, fan_out: bool = False
    ) -> WorkerProcess:
        arguments = [url, ledger.url, pool, str(concurrency)]
        arguments += ["fan-out"] if fan_out else []
        worker = WorkerProcess(tmp_path / f"worker-{len(started)}.log", arguments, program=RECORDING_WORKER)
        started.append(worker)
        worker.wait_until_ready()
        return worker

    yield start
    for worker in started:
        worker.kill()


class StartAgentWorker(Protocol):
    def __call__(
        self, url: str, model: ScriptedModel, concurrency: int = 2, pool: str = "threads", *more: str
    ) -> WorkerProcess: ...


@contextmanager
def agent_workers(folder: Path) -> Iterator[StartAgentWorker]:
    """Start workers in `folder`; kill the remaining ones at the end."""
    started: list[WorkerProcess] = []

    def start(
        url: str, model: ScriptedModel, concurrency: int = 2, pool: str = "threads", *more: str
    ) -> WorkerProcess:
        log = folder / f"agent-worker-{len(started)}.log"
        arguments = ["--url", url, "-c", str(concurrency), "--pool", pool]
        arguments += [
            "--tools-path",
            str(folder),
            *(ALLOW_ALL if "--allow-python" not in more else ()),
            *more,
        ]
        worker = WorkerProcess(log, arguments, environ={**os.environ, **model.environ}, folder=folder)
        started.append(worker)
        worker.wait_until_ready()
        return worker

    try:
        yield start
    finally:
        for worker in started:
            worker.kill()


@pytest.fixture
def start_agent_worker(tmp_path: Path) -> Iterator[StartAgentWorker]:
    """`start_agent_worker(url, model, concurrency=2, pool="threads")`: a worker that is ready."""
    with agent_workers(tmp_path) as start:
        yield start


@pytest.fixture
def agents_server() -> Iterator[PrivateServer]:
    """An empty Redis for one test."""
    with PrivateServer() as server:
        yield server


@pytest.fixture
def store(agents_server: PrivateServer) -> Iterator[Store]:
    """A store on it."""
    with fdstore.connect(agents_server.url) as connected:
        yield connected


@pytest.fixture(scope="module")
def shared_bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("pipelines")
    with PrivateServer() as server, ScriptedModel([]) as model, agent_workers(folder) as start:
        made = Bench(server, model, start)
        made.start_worker()
        yield made
        made.close()


@pytest.fixture
def bench(shared_bench: Bench) -> Iterator[Bench]:
    """A bench whose worker many tests share; after each test no pipeline may be running."""
    shared_bench.begin()
    yield shared_bench
    for member in shared_bench.store.tree(shared_bench.proc.id).members:
        if member.id != shared_bench.proc.id and member.state not in ENDED:
            shared_bench.show("kill", target=member.id)
    shared_bench.assert_nothing_runs(15)


@pytest.fixture
def empty_bench(agents_server: PrivateServer, start_agent_worker: StartAgentWorker) -> Iterator[Bench]:
    """A bench for one test, without a worker."""
    with ScriptedModel([]) as model:
        made = Bench(agents_server, model, start_agent_worker)
        made.begin()
        yield made
        made.close()


@pytest.fixture
def harness(
    agents_server: PrivateServer, tmp_path: Path, start_agent_worker: StartAgentWorker
) -> Iterator[AgentHarness]:
    """A harness for one test, without a worker."""
    with open_harness(agents_server, tmp_path, start_agent_worker) as made:
        yield made


@pytest.fixture(scope="module")
def shared_harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHarness]:
    """A harness with one worker that many tests share."""
    folder = tmp_path_factory.mktemp("crew")
    with (
        PrivateServer() as server,
        agent_workers(folder) as start,
        open_harness(server, folder, start) as made,
    ):
        made.start_worker(concurrency=4)
        yield made
