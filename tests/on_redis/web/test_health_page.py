"""The page of the store's health."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

import fdstore.aio
from fdstore.client import Process, Store
from fdstore.store.processes import processes
from fdstore.store.processes.leases import SWEEP_EVERY_S
from fdstore.store.views.worker_registry import HEARTBEAT_S
from fdstore.web import trees
from fdstore.web.inspector import HEALTH_S, Inspector, Options
from fdstore.web.live import changes
from fdstore.web.page import PageRequest
from tests.on_redis.web.inspected import get
from tests.waiting import PATIENCE_S


def test_health_shows_the_findings_of_doctor_and_the_memory(
    redis_url: str, proc: Process, store: Store
) -> None:
    store.run(processes.create_child(proc.handle, None, state="ready"))

    page, twin = get(redis_url, "/health", "/health.json")

    findings = {each["subject"]: each for each in twin.json()["findings"]}
    assert not findings["workers"]["ok"]
    assert "1 process waits for one" in findings["workers"]["said"]
    assert findings["eviction"]["ok"]
    assert "may not read" not in findings["torn log"]["said"]
    assert twin.json()["servers"][0]["used_bytes"] > 100_000
    assert "fdstore worker" in page.text


def test_a_page_that_is_shown_gets_the_strip_when_the_health_changes(
    redis_url: str, proc: Process, store: Store
) -> None:
    store.run(processes.create_child(proc.handle, None, state="ready"))

    async def first_strip() -> bytes:
        async with (
            asyncio.timeout(PATIENCE_S),
            await fdstore.aio.connect(redis_url, looking=True) as looking,
        ):
            scope = {"type": "http", "path": "/", "query_string": b"strip=another", "headers": []}
            page_request = PageRequest(Request(scope), Inspector(looking, Options()))
            async for event in changes(trees.PAGES[0], page_request):
                if event.startswith(b"event: strip"):
                    return event
        raise AssertionError("the stream ended")

    strip = asyncio.run(first_strip()).decode()

    assert 'id=\\"strip\\" class=\\"bad\\"' in strip
    assert "1 process waits for one" in strip


def test_a_worker_that_stops_is_on_the_first_page_within_ten_seconds() -> None:
    [first] = [page for page in trees.PAGES if page.path == "/"]
    assert first.live_s is not None

    assert HEARTBEAT_S + HEALTH_S + first.live_s <= 10
    assert HEARTBEAT_S > 2 * SWEEP_EVERY_S, "a report may be late, and one may be missed"
