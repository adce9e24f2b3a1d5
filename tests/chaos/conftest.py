"""Fault injection: real servers, workers and clients that are killed, suspended, disconnected and filled up.

Every test of this folder records the faults that it injected; a test without a fault proves nothing and
fails. After each test the store's counters are checked against its keys. Random schedules come from a seed,
which is part of the test id:

    CHAOS_SEEDS=100 pytest tests/chaos -k seed       100 seeds in place of the one of a normal run
    CHAOS_SEED=17 pytest tests/chaos -k seed         this seed only
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import fdstore
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from tests.chaos.proxy import Proxy
from tests.chaos.worker_pool import WorkerPool
from tests.waiting import stretched

USUAL_SEEDS = 1
os.environ.setdefault("CHAOS_FASTER", f"{10 / stretched(1):g}")
DURABLE = {"appendonly": "yes", "appendfsync": "always"}

Execute = Callable[..., Any]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        one = os.environ.get("CHAOS_SEED")
        seeds = [int(one)] if one else range(int(os.environ.get("CHAOS_SEEDS", USUAL_SEEDS)))
        metafunc.parametrize("seed", seeds, ids=lambda seed: f"seed-{seed}")


class Faults:
    """The faults that one test injected."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()

    def note(self, kind: str, count: int = 1) -> None:
        self.kinds[kind] += count

    def __str__(self) -> str:
        return ", ".join(f"{count} x {kind}" for kind, count in self.kinds.items() if count) or "none"


@pytest.fixture(autouse=True)
def faults() -> Iterator[Faults]:
    """Print the injected faults; fail a test without any."""
    noted = Faults()
    yield noted
    print(f"faults: {noted}")
    assert noted.kinds.total(), "no fault happened, so this test proved nothing"


@pytest.fixture
def server() -> Iterator[PrivateServer]:
    """A Redis that keeps every acknowledged write, even when killed."""
    with PrivateServer(DURABLE, port=True) as started:
        yield started


@pytest.fixture
def store(server: PrivateServer) -> Iterator[Store]:
    with fdstore.connect(server.url) as connected:
        yield connected


@pytest.fixture
def execute(server: PrivateServer) -> Iterator[Execute]:
    """`execute(*command)` returns the raw reply of Redis. Works across restarts of the server."""
    with redis.Redis.from_url(server.url, protocol=2) as client:

        def send(*command: Any) -> Any:
            connection = client.connection_pool.get_connection()
            try:
                connection.send_command(*command)
                return connection.read_response()
            finally:
                client.connection_pool.release(connection)

        yield send


@pytest.fixture(autouse=True)
def counted(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check after every test, when all workers are gone, that the counters match the stored keys."""
    if "server" not in request.fixturenames:
        yield
        return
    check_keys: Callable[[Execute], None] = request.getfixturevalue("assert_counted")
    execute: Execute = request.getfixturevalue("execute")
    yield
    check_keys(execute)


@pytest.fixture
def worker_pool(server: PrivateServer, tmp_path: Path, faults: Faults) -> Iterator[WorkerPool]:
    """Workers of this test, with leases of one second."""
    hired = WorkerPool(server.url, tmp_path, faults.note)
    yield hired
    hired.kill_all()


@pytest.fixture
def proxy(server: PrivateServer, faults: Faults) -> Iterator[Proxy]:
    """A proxy in front of the server that injects network faults."""
    with Proxy(server.url, faults.note) as between:
        yield between
