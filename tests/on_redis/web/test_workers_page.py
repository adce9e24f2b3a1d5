"""The page of the workers: which there are, and what each runs."""

from __future__ import annotations

import time

from fdstore.client import Process, Store
from fdstore.store.keys import process_keys
from fdstore.store.processes import leases, processes
from fdstore.store.views import worker_registry
from tests.on_redis.web.inspected import get


def claimed(proc: Process, store: Store) -> Process:
    """A child that a worker runs."""
    child = store.run(
        processes.create_child(proc.handle, None, state="ready", brief='{"kind":"brief","query":"x"}')
    )
    store.run(leases.claim(process_keys("fdstore", child.id), "host:77", 60))
    return Process(store, child)


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
