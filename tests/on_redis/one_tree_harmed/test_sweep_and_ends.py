"""Damaged records of one tree do not stop the sweep, kills and collections of the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
import pytest
import redis
from click.testing import Result

from fdstore.client import Store
from fdstore.model.lifecycle import ENDED
from fdstore.store.clock import redis_now
from fdstore.store.processes import asks, leases, process_records, processes
from fdstore.store.trees import collect_trees
from fdstore_workers.sweeper import Sweeper, collect_due, sweep
from tests.on_redis.child_agents import claim
from tests.waiting import PATIENCE_S, wait_until

Command = Callable[..., Result]


def swept(store: Store) -> set[str]:
    """Return the trees in which a sweep an hour from now wakes a process."""
    woken: list[str] = []
    sweep(store, woken.append, store.run(redis_now()) + 3600)
    return {process.partition(".")[0] for process in woken}


# --- the sweep


def test_an_invalid_byte_in_the_leases_of_a_tree_does_not_stop_the_sweep(
    store: Store, client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    client.zadd("fdstore:{hurt}:leases", {b"\xff": 0})

    assert swept(store) == {"alpha", "hurt", "omega"}
    problem = "\\xff is not a process of this tree (tree hurt)"
    assert f"fdstore:{{hurt}}:leases is skipped: {problem}" in caplog.text


def test_a_leases_key_of_another_type_does_not_stop_the_sweep_of_other_trees(
    store: Store, client: redis.Redis
) -> None:
    client.delete("fdstore:{hurt}:leases")
    client.set("fdstore:{hurt}:leases", "x")

    assert swept(store) == {"alpha", "omega"}


def test_the_leases_of_one_tree_never_name_a_process_of_another(store: Store, client: redis.Redis) -> None:
    client.zadd("fdstore:{hurt}:leases", {"omega.3": 0})

    found = store.run(leases.find_due("fdstore", ["hurt"], store.run(redis_now())))

    assert {keys.tree.tree for keys in found.processes} == {"hurt"}
    assert "omega.3 is not a process of this tree" in found.unreadable[0][1].problem


@pytest.mark.parametrize("lease_until", ["nan", "inf", "1000000000000", "-1", "", "soon"])
def test_an_impossible_lease_counts_as_expired(store: Store, client: redis.Redis, lease_until: str) -> None:
    client.hset("fdstore:{hurt}:hurt.3", "lease_until", lease_until)
    client.zadd("fdstore:{hurt}:leases", {"hurt.3": 1})

    sweep(store, lambda _: None)

    record = store.run(process_records.record("fdstore", "hurt.3"))
    assert (record.state, record.losses) == ("ready", 1)


def test_an_invalid_loss_count_restarts_from_zero(store: Store, client: redis.Redis) -> None:
    client.hset("fdstore:{hurt}:hurt.3", mapping={"losses": "nan", "lease_until": "1"})
    client.zadd("fdstore:{hurt}:leases", {"hurt.3": 1})

    sweep(store, lambda _: None)

    record = store.run(process_records.record("fdstore", "hurt.3"))
    assert (record.state, record.losses) == ("ready", 1)


@contextmanager
def sweeping(store: Store, wake: Callable[[str], None]) -> Iterator[None]:
    """Run a real sweeper during the block."""
    sweeper = Sweeper(store, "here:1", wake)
    sweeper.start()
    try:
        yield
    finally:
        sweeper.stop()


@pytest.fixture
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEASE_S", "SWEEP_EVERY_S", "WAKE_AGAIN_S"):
        monkeypatch.setattr(leases, name, getattr(leases, name) / 200)


@pytest.mark.usefixtures("short_intervals")
def test_the_sweeper_survives_an_unexpected_exception(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """Regression test: the thread ended and the worker continued without sweeps."""
    woken: list[str] = []
    again = threading.Event()

    def wake(process: str) -> None:
        woken.append(process)
        if woken.count(process) > 1:
            again.set()
        raise ZeroDivisionError(process)

    with sweeping(store, wake):
        assert again.wait(PATIENCE_S)

    assert {process.partition(".")[0] for process in woken} == {"alpha", "hurt", "omega"}
    assert caplog.text.count("ZeroDivisionError: ") < 20  # not a traceback each round


@pytest.mark.usefixtures("short_intervals")
@pytest.mark.parametrize("key", ["workers", "sweeper", "workers:commands", "workers:agents", "totals"])
def test_damaged_worker_records_do_not_stop_the_sweep(store: Store, client: redis.Redis, key: str) -> None:
    client.hset("fdstore:sweeper" if key == "sweeper" else "fdstore:other", "x", "y")
    if key != "sweeper":
        client.set(f"fdstore:{key}", "x")
    woken: list[str] = []

    with sweeping(store, woken.append):
        wait_until(lambda: {"alpha", "omega"} <= {process.partition(".")[0] for process in woken})


# --- the end of a tree


def test_a_kill_iterates_over_existing_processes_not_over_numbers(store: Store, client: redis.Redis) -> None:
    """Regression test: a script iterated over 50 million numbers and blocked Redis."""
    client.hset("fdstore:{hurt}:hurt", "next_child", 50_000_000)

    done = store.run(processes.cancel("fdstore", "hurt"))

    assert set(done.cancelled) == {"hurt", "hurt.1", "hurt.2", "hurt.3", "hurt.4", "hurt.4.1", "hurt.6"}
    assert {member.state for member in store.tree("hurt").members} <= ENDED


def test_a_kill_ends_all_processes_except_unwritable_ones_and_names_those(
    command: Command, client: redis.Redis
) -> None:
    client.delete("fdstore:{hurt}:hurt.2")
    client.set("fdstore:{hurt}:hurt.2", "x")

    done = command("kill", "hurt")

    assert done.exit_code == 0
    assert {"hurt", "hurt.3", "hurt.4.1"} <= set(done.stdout.split())
    assert "fdstore: process hurt.2 cannot be read: WRONGTYPE" in done.stderr


@pytest.mark.parametrize("part", ["fds", "writes", "events"])
@pytest.mark.parametrize("process", ["hurt", "hurt.1", "hurt.3"])
def test_a_process_with_damaged_descriptors_can_be_ended(
    store: Store, client: redis.Redis, process: str, part: str
) -> None:
    client.delete(f"fdstore:{{hurt}}:{process}:{part}")
    client.set(f"fdstore:{{hurt}}:{process}:{part}", "x")

    store.run(processes.cancel("fdstore", process))

    assert store.run(process_records.record("fdstore", process)).state == "cancelled"


@pytest.mark.parametrize("used_at", ["nan", "", "-1", "long ago"])
def test_a_tree_with_an_unreadable_last_use_is_not_collected(
    store: Store, client: redis.Redis, used_at: str
) -> None:
    """Regression test: NaN is not greater than now, so a tree in use was removed."""
    store.run(processes.cancel("fdstore", "hurt"))
    client.hset("fdstore:{hurt}", "used_at", used_at)
    client.zadd("fdstore:trees", {"hurt": 0})

    collect_due(store)

    assert client.exists("fdstore:{hurt}:hurt:fd:1")


def test_gc_names_a_damaged_tree_and_removes_the_other_due_trees(
    command: Command, store: Store, client: redis.Redis
) -> None:
    for tree in ("hurt", "omega"):
        store.run(processes.cancel("fdstore", tree))
        client.hset(f"fdstore:{{{tree}}}", "used_at", 1)
        client.zadd("fdstore:trees", {tree: 0})
    client.hset("fdstore:{hurt}", "limits", "[")

    planned, done = command("gc", "--dry-run", "--json"), command("gc")

    assert [msgspec.json.decode(line).keys() for line in planned.stdout.splitlines()] == [
        {"tree", "outcome", "detail"},
        {"unreadable"},
    ]
    assert "omega  removed" in done.stdout
    assert "of tree hurt cannot be read" in done.stderr
    assert client.exists("fdstore:{hurt}", "fdstore:{omega}") == 1


def test_damaged_trees_block_neither_new_trees_nor_the_collection_of_old_ones(
    store: Store, client: redis.Redis
) -> None:
    for tree in ("a", "b", "c", "old"):
        store.process(tree).end()
        client.hset(
            f"fdstore:{{{tree}}}", mapping={"used_at": 1} | ({"limits": "["} if tree != "old" else {})
        )
        client.zadd("fdstore:trees", {tree: ord(tree[0])})

    store.process("new")
    store.process("newer")

    assert not client.exists("fdstore:{old}")
    assert client.exists("fdstore:{a}", "fdstore:{b}", "fdstore:{c}") == 3
    assert store.run(collect_trees.due_trees("fdstore")) == []


@pytest.mark.parametrize("field", ["lanes/call", "lanes", "open"])
def test_a_script_reads_a_bounded_part_of_a_damaged_list(
    store: Store, client: redis.Redis, field: str
) -> None:
    """A script that went through all of it would keep Redis from everybody else for seconds."""
    proc = store.process("wide")
    child = store.run(processes.create_child(proc.handle, [], state="ready"))
    handle = claim(store, child.id)
    key = handle.keys.questions if field == "open" else handle.keys.asks
    client.hset(key, field, "9 " * 400_000 if field == "open" else f"{child.id}.9 " * 200_000)
    before = calls_of(client)

    if field == "lanes/call":
        store.run(asks.answers(handle, "call", [1]))
    else:
        store.run(processes.end(handle, "exited"))

    assert calls_of(client) - before < 40_000


def calls_of(client: redis.Redis) -> int:
    """Return how many commands have run, those of scripts too."""
    return sum(each["calls"] for each in client.info("commandstats").values())
