"""The pages of a tree, the workers and the store's health; and killing."""

from __future__ import annotations

import time
from typing import Any

import httpx2

from fdstore.client import Process, Store
from fdstore.store.keys import process_keys
from fdstore.store.processes import leases, processes
from fdstore.store.views import worker_registry
from tests.on_redis.web.inspected import ORIGIN, get, inspect
from tests.on_redis.web.journals import SHORT, converse


def claimed(proc: Process, store: Store) -> Process:
    """A child that a worker runs."""
    child = store.run(
        processes.create_child(proc.handle, None, state="ready", brief='{"kind":"brief","query":"x"}')
    )
    store.run(leases.claim(process_keys("fdstore", child.id), "host:77", 60))
    return Process(store, child)


def test_a_tree_shows_processes_in_order_with_limits_and_a_timeline(redis_url: str, proc: Process) -> None:
    proc.create("x" * 100)
    for _ in range(10):
        proc.child()
    converse(proc, *SHORT)

    page, twin = get(redis_url, "/tree/triage", "/tree/triage.json")

    ids = [each["id"] for each in twin.json()["processes"]]
    assert ids == ["triage", *(f"triage.{number}" for number in range(1, 11))]
    limits = {each["name"]: each for each in twin.json()["limits"]}
    assert (limits["tree_bytes"]["used"], limits["tree_processes"]["used"]) == (100, 11)
    [row] = [row for row in twin.json()["timeline"]["rows"] if row["process"] == "triage"]
    assert [span["label"] for span in row["spans"]] == ["read_fd", "search_web"]
    assert page.text.count('class="life') == len(twin.json()["timeline"]["rows"])
    assert 'style="' not in page.text


def test_a_large_tree_is_shown_by_windows(redis_url: str, proc: Process, monkeypatch: Any) -> None:
    monkeypatch.setattr("fdstore.web.tree.ROWS", 2)
    for _ in range(4):
        proc.child()

    found, path = [], "/tree/triage.json"
    while path:
        page = get(redis_url, path).json()
        found.append([each["id"] for each in page["processes"]])
        path = "" if page["next"] is None else f"/tree/triage.json?from={page['next']}"

    assert found == [["triage", "triage.1"], ["triage.2", "triage.3"], ["triage.4"]]


def test_workers_are_shown_with_what_each_runs(redis_url: str, proc: Process, store: Store) -> None:
    now = time.time()
    for name in ("host:77", "host:78"):
        store.run(worker_registry.register_worker("fdstore", name, 60, now, "<b>bubblewrap</b>"))
    running = claimed(proc, store)
    waiting = store.run(processes.create_child(proc.handle, None, state="ready"))

    page, twin = get(redis_url, "/workers", "/workers.json")

    found = twin.json()
    assert {each["name"]: [job["process"] for job in each["jobs"]] for each in found["workers"]} == {
        "host:77": [running.id],
        "host:78": [],
    }
    assert [each["process"] for each in found["ready"]] == [waiting.id]
    assert (found["queued"], found["taken"], found["strays"]) == (0, 0, [])
    assert "&lt;b&gt;bubblewrap" in page.text


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


def test_nothing_can_be_killed_without_permission(redis_url: str, proc: Process) -> None:
    async def visit(client: httpx2.AsyncClient) -> list[int]:
        asked = await client.get("/process/triage/kill")
        done = await client.post("/process/triage/kill", headers={"Origin": ORIGIN}, data={"x": "1"})
        return [asked.status_code, done.status_code]

    assert inspect(redis_url, visit) == [403, 403]
    assert proc.store.processes()[0].state == "open"
    assert "Kill" not in get(redis_url, "/process/triage").text


def test_a_kill_needs_a_request_of_our_own_page_and_then_cancels_all_below(
    redis_url: str, proc: Process
) -> None:
    proc.child()

    async def visit(client: httpx2.AsyncClient) -> list[httpx2.Response]:
        path = "/process/triage/kill"
        return [
            await client.get(path),
            await client.post(path, data={"x": "1"}),
            await client.post(path, data={"x": "1"}, headers={"Origin": "http://evil.example"}),
            await client.post("/process/triage.7/kill", data={"x": "1"}, headers={"Origin": ORIGIN}),
            await client.post(path, data={"x": "1"}, headers={"Origin": ORIGIN}),
        ]

    asked, *refused, missing, done = inspect(redis_url, visit, may_kill=True)

    assert "Kill it" in asked.text
    assert [each.status_code for each in refused] == [403, 403]
    assert missing.status_code == 404
    assert (done.status_code, done.headers["location"]) == (303, "/process/triage")
    assert [each.state for each in proc.store.processes()] == ["cancelled", "cancelled"]
