"""A store with one damaged tree among three, restored for each test."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis
from click.testing import CliRunner, Result

from fdstore.cli import cli
from fdstore.client import Store
from tests.on_redis.damage import DamagedStore

Command = Callable[..., Result]


@pytest.fixture
def damaged_store(shared_damaged_store: DamagedStore) -> DamagedStore:
    shared_damaged_store.restore()
    return shared_damaged_store


@pytest.fixture
def store(damaged_store: DamagedStore) -> Store:
    return damaged_store.store


@pytest.fixture
def client(damaged_store: DamagedStore) -> redis.Redis:
    return damaged_store.client


@pytest.fixture
def command(damaged_store: DamagedStore) -> Command:
    """Return a function that runs a command on the damaged store, in this process."""

    def call(*arguments: str) -> Result:
        done = CliRunner().invoke(cli, ["--url", damaged_store.store.url, *arguments])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    return call
