"""The page of the store's health."""

from __future__ import annotations

from fdstore.client import Process, Store
from fdstore.store.processes import processes
from tests.on_redis.web.inspected import get


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
