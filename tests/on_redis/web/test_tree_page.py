"""The page of a tree: its processes in order, its limits, its timeline."""

from __future__ import annotations

from typing import Any

from fdstore.client import Process
from tests.on_redis.web.inspected import get
from tests.on_redis.web.journals import SHORT, converse


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
