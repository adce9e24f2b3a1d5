"""The work of a request is bounded, whatever the store holds; and what happens while Redis is away."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import msgspec
import pytest

import fdstore
import fdstore.aio
from fdstore.client import Process, Store
from fdstore.inspector.web.app import make_app
from fdstore.inspector.web.inspector import Inspector, Options
from fdstore.local.redis_server import PrivateServer
from tests.on_redis.inspector.inspected import ORIGIN, Get, Served
from tests.on_redis.inspector.journals import SHORT, answer, converse
from tests.outages import advance
from tests.round_trips import Tally
from tests.waiting import PATIENCE_S

COSTS = {
    "/": (12, 120, 20_000),
    "/index.json?sort=bytes": (12, 120, 20_000),
    "/tree/triage": (16, 102, 2_250_000),  # mostly of the journals, which are read once
    "/process/triage": (20, 130, 2_250_000),  # as above
    "/process/triage/record/1": (3, 8, 20_000),
    "/questions": (4, 60, 20_000),
    "/workers": (8, 60, 20_000),
    "/health": (16, 70, 60_000),
}
"""The most round trips, commands and bytes of replies of each page, for the store below."""

STRIP = (9, 115, 20_000)
"""Those of the strip of the store's health and of the count of open questions, which all pages in HTML share;
they are read again after a second."""


@pytest.fixture
def large(store: Store, proc: Process) -> Process:
    """A process with a long conversation, many descriptors and children, beside other trees."""
    for number in range(20):
        store.process(f"tree-{number}").create("x" * 1000)
    for _ in range(20):
        proc.child()
    converse(proc, *SHORT, *(answer(f"turn {number}: " + "x" * 500) for number in range(500)))
    return proc


def grow(proc: Process) -> None:
    """Give the store much more of everything that the pages leave out."""
    proc.create("y" * 3_000_000)
    child = proc.child()
    converse(child, *(answer("z" * 900) for _ in range(300)))
    converse(proc, *(answer(f"turn {number}: " + "x" * 500) for number in range(2000)))


def cost(get: Get, path: str) -> tuple[int, int, int]:
    tally = Tally()
    assert get(path, tally=tally).status_code == 200
    return tally.round_trips, tally.commands, tally.reply_bytes


@pytest.mark.thorough("a large store")
def test_the_cost_of_each_page_is_bounded_and_does_not_grow_with_the_store(get: Get, large: Process) -> None:
    before = {path: cost(get, path) for path in COSTS}
    grow(large)
    after = {path: cost(get, path) for path in COSTS}

    for path, most in COSTS.items():
        if not path.partition("?")[0].endswith(".json"):
            most = tuple(map(sum, zip(most, STRIP, strict=True)))
        assert all(found <= bound for found, bound in zip(after[path], most, strict=True)), (
            path,
            after[path],
        )
        # one more process, and one more tail of a journal
        assert after[path][1] <= before[path][1] + 12, path


def test_no_page_sends_a_command_that_scans_or_writes(
    get: Get, large: Process, execute: Callable[..., Any]
) -> None:
    execute("CONFIG", "RESETSTAT")

    for path in COSTS:
        cost(get, path)

    used = {line.split(":")[0] for line in execute("INFO", "commandstats").decode().split() if ":" in line}
    scans = {"keys", "scan", "sscan", "hscan", "zscan", "smembers", "hkeys"}
    writes = {"set", "hset", "zadd", "del", "unlink", "rpush", "sadd", "expire", "xadd"}
    assert not used & {f"cmdstat_{name}" for name in scans | writes}


def events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the data of each event but those of the strip, which comes whenever it differs."""
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: ") and name != "strip":
            yield name, msgspec.json.decode(line[6:])


def test_a_page_of_a_store_that_never_answers_is_given_up_and_then_at_once(
    own_redis: PrivateServer,
) -> None:
    async def main() -> None:
        async with await fdstore.aio.connect(own_redis.url, looking=True, patience=0.2) as store:
            app = httpx2.ASGITransport(make_app(Inspector(store, Options())))
            async with (
                asyncio.timeout(PATIENCE_S),
                httpx2.AsyncClient(transport=app, base_url=ORIGIN) as client,
            ):
                assert own_redis.pid is not None
                os.kill(own_redis.pid, signal.SIGSTOP)
                pages = [await client.get(path) for path in ("/", "/", "/workers")]
                os.kill(own_redis.pid, signal.SIGCONT)
                advance(store, 1.5)
                back = await client.get("/")
        assert [page.status_code for page in (*pages, back)] == [503, 503, 503, 200]
        assert ["it is tried again in" in page.text for page in pages] == [False, True, True]

    asyncio.run(main())


@pytest.fixture
def own_redis() -> Iterator[PrivateServer]:
    """A server that the test stops."""
    with PrivateServer() as server:
        yield server


@pytest.mark.thorough("ten seconds of waiting")
def test_a_page_that_is_shown_follows_changes_and_an_outage(own_redis: PrivateServer) -> None:
    with (
        Served(own_redis.url) as served,
        httpx2.Client(base_url=served.url, timeout=PATIENCE_S) as client,
        client.stream("GET", "/index.live") as response,
    ):
        found = events(response.iter_lines())
        name, data = next(found)
        assert (name, "Nothing is stored yet" in data["html"]) == ("page", True)
        with fdstore.connect(own_redis.url) as store:
            store.process("another")
        name, data = next(found)
        assert (name, 'id="tree-another"' in data["html"]) == ("page", True)
        own_redis.stop()
        name, data = next(found)
        assert (name, "Redis" in data) == ("outage", True)
        away = client.get("/")
        assert (away.status_code, away.headers["refresh"]) == (503, "2")
        assert "tries again" in away.text
        own_redis.start()
        assert next(found)[0] == "page"
        assert client.get("/").status_code == 200
    assert served.inspector.live == 0
