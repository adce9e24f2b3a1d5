"""A real Redis for the tests of this folder: a private one, started once in each test process.

Without a redis-server the fixtures fail, and do not skip: a green run means that these tests ran.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from fdstore.store.server import PrivateServer


@pytest.fixture(scope="session")
def redis_server() -> Iterator[PrivateServer]:
    """The server of this test process (with pytest-xdist: of this worker)."""
    with PrivateServer() as server:
        yield server


@pytest.fixture
def redis_url(redis_server: PrivateServer) -> str:
    """The URL of a running, empty Redis."""
    redis_server.start()  # a test may have ended it
    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
    return redis_server.url
