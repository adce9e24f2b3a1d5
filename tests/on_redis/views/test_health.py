"""The health of a store: what is read from it, and that every place which shows it says the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import redis
from click.testing import CliRunner

import fdstore
from fdstore.cli import cli
from fdstore.client import Process, Store
from fdstore.local.redis_server import PrivateServer
from fdstore.store.clock import redis_now
from fdstore.store.doctor.safety import Finding
from fdstore.store.keys import process_keys
from fdstore.store.processes import leases, processes
from fdstore.store.views import gauges, worker_registry
from fdstore.store.views.health import read_health
from fdstore_workers.sweeper import sweep
from tests.on_redis.inspector.inspected import get
from tests.round_trips import count_round_trips

Execute = Callable[..., Any]


def register(store: Store, name: str = "host:1", ago_s: float = 0.0) -> None:
    now_s = store.run(redis_now())
    store.run(worker_registry.register_worker("fdstore", name, 10, now_s - ago_s))


def waiting(proc: Process, store: Store) -> str:
    return store.run(processes.create_child(proc.handle, [], state="ready")).id


def findings(store: Store) -> dict[str, Finding]:
    return {each.subject: each for each in store.run(read_health("fdstore"))}


def swept(store: Store) -> None:
    found = sweep(store, lambda _: None)
    store.run(gauges.store_totals(store.prefix, found.usage, store.run(redis_now())))


def test_the_health_of_any_number_of_trees_costs_seven_round_trips(store: Store, proc: Process) -> None:
    for number in range(30):
        waiting(store.process(f"tree-{number}"), store)
    register(store)

    _, round_trips = count_round_trips(store, read_health("fdstore"))

    assert round_trips <= 7


def test_a_process_that_waits_too_long_is_told_with_the_time(
    store: Store, proc: Process, execute: Execute
) -> None:
    register(store)
    since = store.run(redis_now()) - 200
    execute("HSET", f"fdstore:{{triage}}:{waiting(proc, store)}", "ready_at", f"{since:.6f}")

    assert findings(store)["queue"].said == "1 process waits for a worker, the oldest for 3 min"
    assert not findings(store)["queue"].ok


def test_failures_and_losses_of_the_last_hour_are_counted_by_tree_and_summed_by_the_sweep(
    store: Store, proc: Process, execute: Execute
) -> None:
    lost = waiting(proc, store)
    store.run(leases.claim(process_keys("fdstore", lost), "host:1", "claim-1"))
    store.run(leases.record_loss(process_keys("fdstore", lost), "claim-1"))
    for number in range(2):
        child = store.run(processes.create_child(store.process(f"tree-{number}").handle, None, state="open"))
        store.run(processes.end(child, "failed", exit_code=None, reason="broke", release=False))
    store.process("well").end()

    swept(store)

    assert findings(store)["failures"].said == "2 processes failed in the last hour"
    assert findings(store)["losses"].said == "1 time in the last hour a process lost its worker"
    assert execute("HGET", "fdstore:{well}", "troubles") is None


def test_the_troubles_of_a_tree_are_bounded_and_those_of_other_hours_are_dropped(
    store: Store, proc: Process, execute: Execute
) -> None:
    now_span = int(store.run(redis_now()) // 300)
    old = " ".join(f"{now_span - back}:1:1" for back in range(100, -1, -1))
    execute("HSET", "fdstore:{triage}", "troubles", old + " 99999999999:5:5 rubbish")

    child = store.run(processes.create_child(proc.handle, None, state="open"))
    store.run(processes.end(child, "failed", exit_code=None, reason="broke", release=False))

    kept = execute("HGET", "fdstore:{triage}", "troubles").decode().split()
    assert len(kept) <= 12
    assert "99999999999:5:5" not in kept
    assert kept[-1].startswith(f"{now_span}:") or kept[-1].startswith(f"{now_span + 1}:")


def test_a_damaged_record_of_workers_is_a_problem(store: Store, proc: Process, execute: Execute) -> None:
    execute("SET", "fdstore:workers", "text")

    [found] = store.run(read_health("fdstore"))

    assert not found.ok
    assert "fdstore:workers" in found.said
    execute("DEL", "fdstore:workers")


def test_the_inspector_status_top_and_doctor_say_the_same_of_a_stuck_queue(
    redis_url: str, store: Store, proc: Process
) -> None:
    waiting(proc, store)
    said = "none is alive, and 1 process waits for one"

    def fdstore(*arguments: str) -> str:
        return CliRunner().invoke(cli, ["--url", redis_url, *arguments]).output

    status = fdstore("status").splitlines()
    assert status[0].startswith("PROBLEM  workers: ")
    assert said in status[0]
    assert status[-1].startswith("1 problem")
    assert said in fdstore("top", "--once")
    assert said in fdstore("doctor")
    assert said in json.dumps(json.loads(fdstore("--json", "top", "--once"))["health"])
    for page in get(redis_url, "/", "/workers", "/tree/triage", "/process/triage", "/health"):
        assert f"</b></a>: {said}" in page.text
        assert 'id="strip" class="bad"' in page.text


def test_processes_whose_lease_lapsed_wait_for_a_worker(
    redis_url: str, store: Store, proc: Process, execute: Execute
) -> None:
    held = waiting(proc, store)
    store.run(leases.claim(process_keys("fdstore", held), "host:1", "claim-1"))
    assert findings(store)["workers"].said == "none is alive"

    lapsed_at = store.run(redis_now()) - 200
    execute("HSET", process_keys("fdstore", held).record, "lease_until", f"{lapsed_at:.3f}")

    found = findings(store)["workers"]
    assert (found.ok, found.said) == (False, "none is alive, and 1 process waits for one")
    first, workers = get(redis_url, "/", "/workers")
    assert "start one: <code>fdstore up</code>" in first.text
    assert "1 process waits for a worker" in workers.text
    register(store)
    assert findings(store)["queue"].said == "1 process waits for a worker, the oldest for 3 min"


def test_without_workers_the_strip_says_how_to_start_one(redis_url: str, store: Store, proc: Process) -> None:
    first = get(redis_url, "/")

    assert 'id="strip" class="warn"' in first.text
    assert "start one: <code>fdstore up</code>" in first.text


def test_the_strip_links_to_what_it_tells(redis_url: str, store: Store, proc: Process) -> None:
    register(store)
    lost = waiting(store.process("lossy"), store)
    store.run(leases.claim(process_keys("fdstore", lost), "host:1", "claim-1"))
    store.run(leases.record_loss(process_keys("fdstore", lost), "claim-1"))
    failed = store.run(processes.create_child(store.process("broken").handle, None, state="open"))
    store.run(processes.end(failed, "failed", exit_code=None, reason="broke", release=False))
    swept(store)

    first, failures, losses = get(redis_url, "/", "/?state=failed&within=1h", "/?state=lost&within=1h")

    bar = first.text[first.text.index('<section id="strip"') :].partition("</section>")[0]
    assert 'href="/?state=failed&amp;within=1h"' in bar
    assert 'href="/?state=lost&amp;within=1h"' in bar
    assert "`" not in bar
    assert "tree-broken" in failures.text
    assert "tree-lossy" not in failures.text
    assert "tree-lossy" in losses.text
    assert "tree-broken" not in losses.text


def test_a_healthy_store_shows_its_figures_in_the_strip(redis_url: str, store: Store, proc: Process) -> None:
    register(store)
    store.run(worker_registry.acquire_sweep("fdstore", "host:1", 30))
    swept(store)

    page = get(redis_url, "/")

    assert 'id="strip" class="good"' in page.text
    assert "1 is alive" in page.text
    assert "no process waits for a worker" in page.text


def test_the_page_of_the_login_has_no_strip(redis_url: str, store: Store, proc: Process) -> None:
    page = get(redis_url, "/login", token="a-token-of-many-characters-0123456789")

    assert page.status_code == 200
    assert "strip" not in page.text


def test_a_redis_that_takes_no_writes_is_a_problem() -> None:
    with PrivateServer() as server:
        with fdstore.connect(server.url) as store:
            store.process("triage").create("text")
            assert "writes" not in [each.subject for each in store.run(read_health(store.prefix))]
        with redis.Redis.from_url(server.url) as plain:
            plain.replicaof("127.0.0.1", 1)
        with fdstore.connect(server.url) as store:
            found = {each.subject: each for each in store.run(read_health(store.prefix))}

    assert not found["writes"].ok
    assert found["writes"].said == "Redis takes none: a replica of 127.0.0.1:1: it accepts no writes"
