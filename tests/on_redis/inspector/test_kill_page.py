"""Killing a process from its page, where the operator permits it."""

from __future__ import annotations

import httpx2

from fdstore.client import Process
from tests.on_redis.inspector.inspected import ORIGIN, Get, Inspect


def test_nothing_can_be_killed_without_permission(get: Get, inspect: Inspect, proc: Process) -> None:
    async def visit(client: httpx2.AsyncClient) -> list[int]:
        asked = await client.get("/process/triage/kill")
        done = await client.post("/process/triage/kill", headers={"Origin": ORIGIN}, data={"x": "1"})
        return [asked.status_code, done.status_code]

    assert inspect(visit) == [403, 403]
    assert proc.store.processes()[0].state == "open"
    assert "Kill" not in get("/process/triage").text


def test_a_kill_needs_a_request_of_our_own_page_and_then_cancels_all_below(
    get: Get, inspect: Inspect, proc: Process
) -> None:
    proc.child()
    assert 'href="/process/triage/kill"' in get("/process/triage", may_kill=True).text

    async def visit(client: httpx2.AsyncClient) -> list[httpx2.Response]:
        path = "/process/triage/kill"
        return [
            await client.get(path),
            await client.post(path, data={"x": "1"}),
            await client.post(path, data={"x": "1"}, headers={"Origin": "http://evil.example"}),
            await client.post("/process/triage.7/kill", data={"x": "1"}, headers={"Origin": ORIGIN}),
            await client.post(path, data={"x": "1"}, headers={"Origin": ORIGIN}),
        ]

    asked, *refused, missing, done = inspect(visit, may_kill=True)

    assert 'method="post" action="/process/triage/kill"' in asked.text
    assert "Kill it</button>" in asked.text
    assert [each.status_code for each in refused] == [403, 403]
    assert missing.status_code == 404
    assert (done.status_code, done.headers["location"]) == (303, "/process/triage")
    assert [each.state for each in proc.store.processes()] == ["cancelled", "cancelled"]
