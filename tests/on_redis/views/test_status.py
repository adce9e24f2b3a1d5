"""The state of a store for operators, and the probes of a worker."""

from __future__ import annotations

import http.client
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import pytest
import redis

import fdstore
from fdstore.agents.runtime.queue import Dispatcher
from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument
from fdstore.http.address import listen
from fdstore.local.redis_server import PrivateServer
from fdstore.store.clock import redis_now
from fdstore.store.doctor import accepted, check
from fdstore.store.keys import process_keys
from fdstore.store.processes import leases, processes
from fdstore.store.views import gauges
from fdstore.store.views.worker_registry import WorkerLoad
from fdstore.telemetry.counts import Counts
from fdstore.wire.store_url import parse_store_url
from fdstore_workers import health
from fdstore_workers.health import StoreProbe, WorkerHealth
from fdstore_workers.status_server import GAUGES, StatusServer, open_status
from fdstore_workers.sweeper import Sweeper
from tests.on_redis.views.test_health import swept
from tests.round_trips import count_round_trips
from tests.waiting import PATIENCE_S, wait_until

Execute = Callable[..., Any]


def test_the_sums_of_any_number_of_trees_cost_two_round_trips(store: Store) -> None:
    for number in range(40):
        store.process(f"tree-{number}").create("x" * 100)
    store.process("tree-0").end()
    swept(store)

    with store.process("tree-1").open_stream():
        swept(store)
        found, round_trips = count_round_trips(store, gauges.read_gauges("fdstore"))

    assert round_trips == 2
    assert (found.trees, found.live_processes, found.open_streams) == (40, 39, 1)
    assert found.text_bytes == sum(store.tree(f"tree-{number}").bytes for number in range(40))
    assert 0 <= found.sweep_lag_s < 60
    assert found.used_memory_bytes > 0


def test_the_problems_that_doctor_finds_are_counted_until_they_are_accepted() -> None:
    with (
        PrivateServer({"appendonly": "yes"}) as server,
        fdstore.connect(server.url) as store,
        closing(redis.Redis.from_url(server.url)) as client,
    ):

        def found() -> tuple[int, bool]:
            read = store.run(gauges.read_gauges("fdstore"))
            return read.problems, read.takes_writes

        assert found() == (0, True)
        client.config_set("appendonly", "no")
        client.config_set("maxmemory-policy", "allkeys-lru")
        assert found() == (2, True)
        findings = store.run(check.examine(parse_store_url(server.url)))
        store.run(accepted.accept("fdstore", "durability", "a cache", findings))
        assert found() == (1, True)
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        assert found() == (2, False)


def test_before_the_first_sweep_the_sums_are_unknown(store: Store, proc: Process) -> None:
    found = store.run(gauges.read_gauges("fdstore"))

    assert (found.trees, found.live_processes, found.sweep_lag_s) == (None, None, None)


def test_the_age_of_the_queue_is_that_of_the_process_that_is_ready_longest(
    store: Store, proc: Process, execute: Execute
) -> None:
    waiting, taken = (store.run(processes.create_child(proc.handle, [], state="ready")).id for _ in range(2))
    for process, age_s in ((waiting, 30), (taken, 500)):
        ready_at = store.run(redis_now()) - age_s
        execute("HSET", f"fdstore:{{triage}}:{process}", "ready_at", f"{ready_at:.6f}")
    store.run(leases.claim(process_keys("fdstore", taken), "worker"))

    age_s, round_trips = count_round_trips(store, gauges.oldest_wait("fdstore", [taken, waiting, "gone"]))

    assert round_trips == 1
    assert 30 <= age_s < 90
    with closing(Dispatcher(store.url)) as wakes:
        wakes.wake(taken, waiting, waiting)
    execute("RPUSH", "fdq:fdstore:queue", "not a message")
    _, round_trips = count_round_trips(store, gauges.read_queue("fdstore"))
    assert round_trips == 1
    with closing(StoreProbe(store, store)) as probe:
        state = probe.look()
    execute("DEL", "fdq:fdstore:queue")
    assert state.queue.length == 4
    assert state.queue.oldest_age_s is not None
    assert 30 <= state.queue.oldest_age_s < 90


def test_a_port_that_is_taken_is_an_error_that_names_it() -> None:
    with closing(listen("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        with pytest.raises(InvalidArgument, match=f"127.0.0.1:{port}: Address already in use"):
            open_status("127.0.0.1", port, 1)


class Watched(NamedTuple):
    """A worker's sweeper, its probes, and a clock that the test sets forward."""

    sweeper: Sweeper
    health: WorkerHealth
    probe: StoreProbe
    stopping: threading.Event
    ahead_s: list[float]
    get: Callable[[str], tuple[int, str]]


@pytest.fixture
def hanging() -> Iterator[threading.Event]:
    """Set to let a wake-up that hangs go on."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def watched(store: Store, hanging: threading.Event, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    monkeypatch.setattr(leases, "LEASE_S", 0.0)  # a new sweeper waits for half a lease
    monkeypatch.setattr(leases, "SWEEP_EVERY_S", 0.01)
    stopping, ahead_s = threading.Event(), [0.0]
    sweeper = Sweeper(store, "host:1", lambda _: hanging.wait(60) and None)
    probe = StoreProbe(store, store, lambda: time.monotonic() + ahead_s[0])
    state = WorkerHealth(sweeper, probe, stopping, lambda: WorkerLoad(slots=8, busy=1))
    with closing(listen("127.0.0.1", 0)) as listener:
        server = StatusServer(listener, Counts(), state, probe, 8)
        server.start()

        def get(path: str) -> tuple[int, str]:
            connection = http.client.HTTPConnection(*listener.getsockname(), timeout=PATIENCE_S)
            with closing(connection):
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()

        sweeper.start()
        state.started()
        yield Watched(sweeper, state, probe, stopping, ahead_s, get)
        hanging.set()
        server.close()
        sweeper.stop()
        probe.close()


def test_a_sweeper_whose_thread_has_ended_is_seen(watched: Watched) -> None:
    assert watched.get("/healthz") == (200, "ok\n")

    watched.sweeper.stop()

    assert watched.get("/healthz") == (503, "the thread of the sweeper has ended\n")
    assert watched.get("/readyz")[0] == 503


def test_a_sweeper_that_hangs_is_seen(
    watched: Watched, store: Store, proc: Process, execute: Execute
) -> None:
    store.run(processes.create_child(proc.handle, [], state="ready"))
    before = watched.sweeper.moved_at
    wait_until(lambda: execute("HGET", "fdstore:{triage}:triage.1", "wakes"), what="a wake-up that hangs")

    assert watched.get("/healthz")[0] == 200
    watched.ahead_s[0] = health.STUCK_AFTER_S + 1

    status, why = watched.get("/healthz")
    assert status == 503
    assert why.startswith("the sweeper has not moved for 12")
    assert watched.sweeper.moved_at >= before


def test_a_loop_that_stands_still_is_seen_unless_the_queue_is_gone(
    watched: Watched, redis_server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.health.loop_moved()
    monkeypatch.setattr(health, "PATIENCE_S", 0.05)
    watched.ahead_s[0] = health.STUCK_AFTER_S + 1
    watched.sweeper.moved_at += 2 * watched.ahead_s[0]
    watched.sweeper._has_moved = lambda: None

    assert watched.get("/healthz")[1].startswith("the loop that consumes messages has not moved for 12")
    watched.ahead_s[0] += 2
    os.kill(redis_server.pid, signal.SIGSTOP)
    try:
        assert watched.get("/healthz") == (200, "ok\n")
    finally:
        os.kill(redis_server.pid, signal.SIGCONT)


def test_a_store_that_hangs_makes_its_metrics_absent_and_delays_nothing(
    watched: Watched, redis_server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_until(lambda: "fdstore_sweep_lag_seconds" in watched.get("/metrics")[1], what="a sweep")
    shown = set(re.findall(r"(?m)^# TYPE (\w+) ", watched.get("/metrics")[1]))
    assert {gauge.name for gauge in GAUGES} <= shown
    monkeypatch.setattr(health, "PATIENCE_S", 0.05)
    watched.ahead_s[0] = 2.0
    os.kill(redis_server.pid, signal.SIGSTOP)
    try:
        status, page = watched.get("/metrics")
        ready, why = watched.get("/readyz")
    finally:
        os.kill(redis_server.pid, signal.SIGCONT)

    assert status == 200
    assert "fdstore_store_up 0.0" in page
    assert "fdstore_worker_ready 0.0" in page
    assert "fdstore_queue_length" not in page
    assert (ready, why) == (503, "the store did not answer within 0.05 s\n")


def test_a_worker_is_not_ready_while_it_shuts_down_or_its_store_evicts(
    watched: Watched, execute: Execute
) -> None:
    assert watched.get("/readyz") == (200, "ok\n")
    execute("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        wait_until(lambda: "allkeys-lru" in watched.get("/readyz")[1], what="notice of the policy")
    finally:
        execute("CONFIG", "SET", "maxmemory-policy", "noeviction")

    watched.stopping.set()

    assert watched.get("/readyz") == (503, "the worker shuts down\n")
    assert watched.get("/healthz")[0] == 200
    assert watched.get("/other")[0] == 404
