"""Damaged records are shown or refused with their name; no page fails otherwise, and none of another tree."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import httpx2
import pytest
import redis

import fdstore
from fdstore.local.redis_server import PrivateServer
from tests.on_redis.damage import DamagedStore, cases
from tests.on_redis.inspector.inspected import inspect

SEED = int(os.environ.get("DAMAGE_SEED", random.randrange(1 << 30)))
SAMPLE = 3

HURT = (
    *("/tree/hurt", "/process/hurt", "/process/hurt.1", "/process/hurt.3", "/process/hurt.5"),
    *("/process/hurt/record/1", "/tree/hurt/export.html", "/compare?a=hurt&b=alpha"),
    "/process/hurt/diff?a=fd:1&b=fd:2",
    *("/process/hurt/fd/1", "/process/hurt/fd/2?q=a&reading=1", "/process/hurt/fd/3", "/process/hurt.1/fd/1"),
)
OTHERS = ("/", "/?sort=bytes", "/tree/alpha", "/process/alpha", "/questions", "/workers", "/health")


@pytest.fixture
def damaged_store(redis_server: PrivateServer) -> Iterator[DamagedStore]:
    redis_server.start()
    with redis.Redis.from_url(redis_server.url) as client, fdstore.connect(redis_server.url) as store:
        yield DamagedStore(store, client)
        client.flushall()


def visit_all(damaged_store: DamagedStore, count: int | None) -> None:
    every = list(cases(damaged_store.client))
    chosen = every if count is None else random.Random(SEED).sample(every, count)

    async def visit(client: httpx2.AsyncClient) -> None:
        for case in chosen:
            damaged_store.restore()
            damaged_store.damage(case)
            for path in HURT:
                found = await client.get(path)  # anything but a typed error is raised here
                assert found.status_code in (200, 400, 404, 500), (SEED, case.name, path)
                assert found.text.startswith("<!doctype html>"), (SEED, case.name, path)
            for path in OTHERS:
                assert (await client.get(path)).status_code == 200, (SEED, case.name, path)

    inspect(damaged_store.store.url, visit)


@pytest.mark.thorough("many records, each drawn")
@pytest.mark.parametrize("count", [SAMPLE, 28])
def test_no_page_fails_over_a_sample_of_damaged_records(damaged_store: DamagedStore, count: int) -> None:
    visit_all(damaged_store, count)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_no_page_fails_over_any_damaged_record(damaged_store: DamagedStore) -> None:
    visit_all(damaged_store, None)
