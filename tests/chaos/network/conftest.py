"""A network of four machines: Redis, two workers, clients. The fixture `server` is the Redis on that network,
so `store` and `execute` use it too; they connect through its Unix socket, which no fault affects."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from fdstore.local.redis_conf import find_binary
from fdstore.local.redis_server import PrivateServer
from tests.chaos.conftest import DURABLE
from tests.chaos.network.machine import NoNetwork
from tests.chaos.network.network import Network
from tests.chaos.network.schedule import REDIS

WORKERS = ("worker-1", "worker-2")
CLIENTS = "clients"
PORT = 6379


@pytest.fixture
def network(seed: int) -> Iterator[Network]:
    try:
        made = Network([REDIS, *WORKERS, CLIENTS], random.Random(seed))
    except NoNetwork as error:
        problem = str(error)
    else:
        with made:
            yield made
        return
    pytest.fail(problem, pytrace=False)


@pytest.fixture
def server(network: Network, tmp_path: Path) -> Iterator[PrivateServer]:
    machine = network.machines[REDIS]
    binary = machine.script(tmp_path / "redis-server", str(find_binary()))
    options: dict[str, str | int] = {**DURABLE, "port": PORT, "bind": machine.address, "protected-mode": "no"}
    with PrivateServer(options, binary=binary) as started:
        yield started


@pytest.fixture
def url(network: Network) -> str:
    """The URL of the Redis on the machines of the network."""
    return f"redis://{network.machines[REDIS].address}:{PORT}/0"
