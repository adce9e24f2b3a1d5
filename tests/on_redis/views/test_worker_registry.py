"""The records of workers: those that vanished are kept for a day, and a bounded number of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from fdstore.client import Store
from fdstore.store.clock import redis_now
from fdstore.store.processes.leases import holder_name
from fdstore.store.views.live import live
from fdstore.store.views.worker_registry import (
    HEARTBEAT_S,
    KEPT_S,
    MAX_VANISHED,
    WorkerLoad,
    Workers,
    read_workers,
    register_worker,
    unregister_worker,
    workers,
)

Execute = Callable[..., Any]


def register(store: Store, name: str, ago_s: float = 0.0) -> None:
    store.run(register_worker("fdstore", name, HEARTBEAT_S, store.run(redis_now()) - ago_s))


def registered(store: Store) -> Workers:
    return store.run(read_workers("fdstore"))


def test_a_worker_that_vanished_is_kept_for_a_day(store: Store, execute: Execute) -> None:
    register(store, "gone:2", ago_s=KEPT_S + 100)
    register(store, "gone:1", ago_s=KEPT_S - 100)

    register(store, "here:1")

    found = registered(store)
    assert [each.name for each in found.alive] == ["here:1"]
    assert [each.name for each in found.vanished] == ["gone:1"]
    assert abs(found.now_s - found.vanished[0].seen_at - (KEPT_S - 100)) < 10
    assert execute("HKEYS", "fdstore:workers:agents") == [b"gone:1", b"here:1"]
    assert store.run(workers("fdstore")) == ["here:1"]


def test_of_many_workers_that_vanished_the_last_are_kept(store: Store) -> None:
    for number in range(MAX_VANISHED + 20):
        register(store, f"gone:{number}", ago_s=1000 - number)

    register(store, "here:1")

    kept = [each.name for each in registered(store).vanished]
    assert kept == [f"gone:{number}" for number in range(MAX_VANISHED + 19, 19, -1)]


def test_a_worker_that_shuts_down_or_comes_back_is_not_among_those_that_vanished(store: Store) -> None:
    for name in ("gone:1", "stopped:1"):
        register(store, name, ago_s=500)

    register(store, "gone:1")
    store.run(unregister_worker("fdstore", "stopped:1"))

    assert registered(store).vanished == []
    assert [each.name for each in registered(store).alive] == ["gone:1"]


def test_top_lists_a_worker_that_vanished_and_does_not_count_it(store: Store) -> None:
    register(store, "gone:1", ago_s=500)
    register(store, "here:1")

    found = store.run(live("fdstore"))

    assert [(each.name, each.vanished_at is None) for each in found.workers] == [
        ("here:1", True),
        ("gone:1", False),
    ]


def test_the_load_of_a_worker_is_in_its_record_and_goes_with_it(store: Store, execute: Execute) -> None:
    load = WorkerLoad(slots=8, busy=3, lost=1, lost_calls=2, since=1000.0, runs=("triage", "triage.1"))
    now_s = store.run(redis_now())
    store.run(register_worker("fdstore", "here:1", HEARTBEAT_S, now_s, load=load))
    register(store, "old:1")

    assert {each.name: each.load for each in registered(store).alive} == {"here:1": load, "old:1": None}
    [shown] = [each for each in store.run(live("fdstore")).workers if each.name == "here:1"]
    assert shown.load == load

    store.run(unregister_worker("fdstore", "here:1"))
    assert execute("HKEYS", "fdstore:workers:load") == [b"old:1"]


def test_a_load_that_cannot_be_read_is_unknown_and_the_worker_is_listed(
    store: Store, execute: Execute
) -> None:
    register(store, "here:1")
    execute("HSET", "fdstore:workers:load", "here:1", '{"slots": "many"}')

    [found] = registered(store).alive

    assert (found.name, found.load) == ("here:1", None)


def test_two_workers_of_one_host_name_and_process_id_are_two(store: Store) -> None:
    killed, lives = (holder_name("container") for _ in range(2))
    now = store.run(redis_now())
    store.run(register_worker("fdstore", killed, 8.0, now - 60))
    store.run(register_worker("fdstore", lives, 8.0, now))

    found = store.run(read_workers("fdstore"))

    assert [each.name for each in found.alive] == [lives]
    assert [each.name for each in found.vanished] == [killed]
    assert all(name.startswith(f"container:{os.getpid()}-") for name in (killed, lives))
