"""A Redis Cluster for the tests of this folder: three nodes of this machine's own, started once in each
test process.

The fixtures are named as those for one Redis, and so mean the same: tests written for one are run here
as they are (see `test_as_one_redis`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.on_cluster.cluster import Cluster
from tests.on_redis.conftest import Execute
from tests.on_redis.conftest import awaited as awaited
from tests.on_redis.conftest import dropped_after as dropped_after
from tests.on_redis.conftest import fill_redis as fill_redis
from tests.on_redis.conftest import leak_check as leak_check
from tests.on_redis.conftest import proc as proc


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        yield made


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """A running, empty Cluster, repaired if the last test damaged it."""
    shared_cluster.empty()
    return shared_cluster


@pytest.fixture
def redis_url(cluster: Cluster) -> str:
    return cluster.url


@pytest.fixture
def execute(cluster: Cluster) -> Execute:
    """Sends one command to the node of its key, or to all when it has none."""
    return cluster.execute
