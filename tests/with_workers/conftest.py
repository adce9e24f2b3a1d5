"""Real workers in processes of their own, a real Redis for each test that may be killed, and a second
one, the ledger, that outlives it and keeps what the tasks noted."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from fdstore.store.server import PrivateServer

RECORDING_WORKER = Path(__file__).with_name("recording_worker.py")


def wait_until(predicate: Callable[[], bool], timeout: float = 20.0) -> None:
    """Return when `predicate()` is true; fail when it still is not after `timeout` seconds."""
    until = time.monotonic() + timeout
    while not predicate():
        assert time.monotonic() < until, f"not so within {timeout:g} s"
        threading.Event().wait(0.02)


class Ledger:
    """What the tasks noted, and the way to let those go on that hold."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._redis = redis.Redis.from_url(url, decode_responses=True)
        self._redis.flushall()

    @property
    def begun(self) -> list[str]:
        return self._redis.lrange("begun", 0, -1)

    @property
    def ended(self) -> list[str]:
        return self._redis.lrange("ended", 0, -1)

    def release(self, process_id: str) -> None:
        self._redis.rpush(f"release:{process_id}", "go")

    def close(self) -> None:
        self._redis.close()


class WorkerProcess:
    """A running recording worker, and what it wrote."""

    def __init__(self, log: Path, arguments: list[str]) -> None:
        self._log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(RECORDING_WORKER), *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def wait_until_ready(self) -> None:
        wait_until(lambda: " ready: " in self.log or not self.is_alive)
        assert self.is_alive, self.log

    def terminate(self) -> None:
        self.process.terminate()

    def kill(self) -> None:
        if self.is_alive:
            self.process.kill()
        self.process.wait()


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
    """An empty Redis of this test alone, once on a unix socket and once on TCP."""
    with PrivateServer(port=request.param == "tcp") as server:
        yield server


@pytest.fixture
def durable_server() -> Iterator[PrivateServer]:
    """A Redis on a unix socket that still knows everything after a kill."""
    with PrivateServer({"appendonly": "yes", "appendfsync": "always"}) as server:
        yield server


@pytest.fixture
def start_worker(tmp_path: Path, ledger: Ledger) -> Iterator[StartWorker]:
    """`start_worker(url, pool="threads", concurrency=2, fan_out=False)`: a worker that is ready."""
    started: list[WorkerProcess] = []

    def start(
        url: str, pool: str = "threads", concurrency: int = 2, *, fan_out: bool = False
    ) -> WorkerProcess:
        arguments = [url, ledger.url, pool, str(concurrency), *(["fan-out"] if fan_out else [])]
        worker = WorkerProcess(tmp_path / f"worker-{len(started)}.log", arguments)
        started.append(worker)
        worker.wait_until_ready()
        return worker

    yield start
    for worker in started:
        worker.kill()
