"""The page of the workers: which there are, and what each runs."""

from __future__ import annotations

import time

from fdstore.client import Process, Store
from fdstore.store.keys import process_keys
from fdstore.store.processes import leases
from fdstore.store.views import worker_registry
from fdstore.text.quantities import moment
from tests.on_redis.inspector.inspected import Get
from tests.on_redis.inspector.journals import ready_child


def claimed(proc: Process, store: Store) -> Process:
    """A child that a worker runs."""
    child = ready_child(proc)
    store.run(leases.claim(process_keys("fdstore", child.id), "host:77", 60))
    return Process(store, child)


def test_workers_are_shown_with_what_each_runs(get: Get, proc: Process, store: Store) -> None:
    now = time.time()
    for name in ("host:77", "host:78"):
        store.run(worker_registry.register_worker("fdstore", name, 60, now, "<b>bubblewrap</b>"))
    running = claimed(proc, store)
    waiting = ready_child(proc)

    page, twin = get("/workers", "/workers.json")

    found = twin.json()
    assert {each["name"]: [job["process"] for job in each["jobs"]] for each in found["workers"]} == {
        "host:77": [running.id],
        "host:78": [],
    }
    assert [each["process"] for each in found["ready"]] == [waiting.id]
    assert (found["queued"], found["taken"], found["strays"]) == (0, 1, [])
    assert "&lt;b&gt;bubblewrap" in page.text


def test_a_worker_that_vanished_is_shown_with_when_and_what_it_held(
    get: Get, proc: Process, store: Store
) -> None:
    now = time.time()
    store.run(worker_registry.register_worker("fdstore", "host:77", worker_registry.HEARTBEAT_S, now - 3600))
    store.run(worker_registry.register_worker("fdstore", "host:78", 10, now))
    held = claimed(proc, store)

    page, twin, first = get("/workers", "/workers.json", "/")

    [alive, gone] = twin.json()["workers"]
    assert (alive["name"], gone["name"]) == ("host:78", "host:77")
    assert abs(gone["seen_at"] - (now - 3600)) < 1
    assert [job["process"] for job in gone["jobs"]] == [held.id]
    assert f"not seen since {moment(gone['seen_at'])}" in page.text
    assert "1</b> vanished" in page.text
    assert f"host:77 not seen since {moment(gone['seen_at'])}" in first.text


def test_the_page_shows_busy_slots_and_lost_calls_of_a_worker_that_runs_nothing(
    get: Get, proc: Process, store: Store
) -> None:
    """Regression test: "Runs nothing now", while every thread was stuck in a call that was lost."""
    load = worker_registry.WorkerLoad(slots=3, busy=3, lost=3)
    store.run(worker_registry.register_worker("fdstore", "host:77", 10, time.time(), load=load))

    page, first = get("/workers", "/")

    assert "Runs nothing now" not in page.text
    assert "<b>3</b> of 3 slots busy" in page.text
    assert "held by lost calls" in page.text
    assert "host:77: 3 of 3 slots are held by calls that it lost" in first.text
    assert 'id="strip" class="bad"' in first.text


def test_the_page_names_what_a_worker_held_that_vanished_although_others_run_it_now(
    get: Get, proc: Process, store: Store
) -> None:
    load = worker_registry.WorkerLoad(slots=3, busy=1, runs=("triage.7",))
    store.run(worker_registry.register_worker("fdstore", "host:77", 10, time.time() - 600, load=load))

    page, first = get("/workers", "/")

    assert 'It held <a class="id" href="/process/triage.7">triage.7</a>.' in page.text
    assert "when it held 1 process" in first.text
