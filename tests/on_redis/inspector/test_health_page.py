"""The page of the store's health."""

from __future__ import annotations

import httpx2

from fdstore.client import Process, Store
from fdstore.inspector.web import trees
from fdstore.inspector.web.inspector import HEALTH_S
from fdstore.store.processes.leases import SWEEP_EVERY_S
from fdstore.store.views.worker_registry import HEARTBEAT_S
from tests.on_redis.inspector.inspected import Get, Served
from tests.on_redis.inspector.journals import ready_child
from tests.waiting import PATIENCE_S


def test_health_shows_the_findings_of_doctor_and_the_memory(get: Get, proc: Process, store: Store) -> None:
    ready_child(proc)

    page, twin = get("/health", "/health.json")

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
    ready_child(proc)

    with (
        Served(redis_url) as served,
        httpx2.stream("GET", f"{served.url}/index.live?strip=another", timeout=PATIENCE_S) as response,
    ):
        lines = response.iter_lines()
        assert "event: strip" in lines
        strip = next(lines)

    assert 'id=\\"strip\\" class=\\"bad\\"' in strip
    assert "1 process waits for one" in strip


def test_a_worker_that_stops_is_on_the_first_page_within_ten_seconds() -> None:
    [first] = [page for page in trees.PAGES if page.path == "/"]
    assert first.live_s is not None

    assert HEARTBEAT_S + HEALTH_S + first.live_s <= 10
    assert HEARTBEAT_S > 2 * SWEEP_EVERY_S, "a report may be late, and one may be missed"
