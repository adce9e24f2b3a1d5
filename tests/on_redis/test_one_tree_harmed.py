"""Regression tests for a damaged tree beside intact ones: each defect once stopped all trees, or hung.

`test_damaged_records` tests all combinations of keys, fields and values.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator

import msgspec
import pytest
import redis
from click.testing import CliRunner, Result

import fdstore
from fdstore.agent.history import read_history
from fdstore.cli import cli
from fdstore.client import Store
from fdstore.errors import DamagedRecord
from fdstore.lifecycle import ENDED
from fdstore.local.redis_server import PrivateServer
from fdstore.store import ceilings, collect_trees, leases, pipelines, process_records, processes
from fdstore.store.clock import redis_now
from fdstore.store.keys import process_keys
from fdstore.tools.process_task import ForkTask, encode_task
from fdstore_workers.sweeper import Sweeper, collect_due, sweep
from tests.on_redis.damage import DamagedStore
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def shared_damaged_store(redis_server: PrivateServer) -> Iterator[DamagedStore]:
    redis_server.start()
    with redis.Redis.from_url(redis_server.url) as client, fdstore.connect(redis_server.url) as store:
        yield DamagedStore(store, client)
        client.flushall()


@pytest.fixture
def damaged_store(shared_damaged_store: DamagedStore) -> DamagedStore:
    shared_damaged_store.restore()
    return shared_damaged_store


@pytest.fixture
def store(damaged_store: DamagedStore) -> Store:
    return damaged_store.store


@pytest.fixture
def client(damaged_store: DamagedStore) -> redis.Redis:
    return damaged_store.client


Command = Callable[..., Result]


@pytest.fixture
def command(damaged_store: DamagedStore) -> Command:
    """Return a function that runs a command on the damaged store, in this process."""

    def call(*arguments: str) -> Result:
        done = CliRunner().invoke(cli, ["--url", damaged_store.store.url, *arguments])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    return call


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


class Rounds:
    """A real sweeper, with a count of its sweeps of a process that is always due."""

    def __init__(self, store: Store, wake: Callable[[str], None]) -> None:
        self.sweeper = Sweeper(store, "here:1", wake)

    def __enter__(self) -> Rounds:
        self.sweeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.sweeper.stop()


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

    with Rounds(store, wake):
        assert again.wait(20)

    assert {process.partition(".")[0] for process in woken} == {"alpha", "hurt", "omega"}
    assert caplog.text.count("ZeroDivisionError: ") < 20  # not a traceback each round


@pytest.mark.usefixtures("short_intervals")
@pytest.mark.parametrize("key", ["workers", "sweeper", "workers:commands", "workers:agents"])
def test_damaged_worker_records_do_not_stop_the_sweep(store: Store, client: redis.Redis, key: str) -> None:
    client.hset("fdstore:sweeper" if key == "sweeper" else "fdstore:other", "x", "y")
    if key != "sweeper":
        client.set(f"fdstore:{key}", "x")
    woken: list[str] = []

    with Rounds(store, woken.append):
        wait_until(lambda: {"alpha", "omega"} <= {process.partition(".")[0] for process in woken})


# --- what people look at


def test_ps_shows_all_readable_processes_and_names_the_unreadable_ones(
    command: Command, client: redis.Redis
) -> None:
    client.hset("fdstore:{hurt}:hurt.2", "started_at", "never")

    shown = command("ps")

    assert shown.exit_code == 0
    assert {"alpha.2", "omega.2", "hurt.3"} <= {word for word in shown.output.split() if "." in word}
    problem = "the record of process hurt.2 cannot be read: could not convert string to float: 'never'"
    assert shown.stderr == f"fdstore: {problem}\n"


def test_ps_with_json_lists_unreadable_processes_last(command: Command, client: redis.Redis) -> None:
    client.hset("fdstore:{hurt}", "limits", "{")

    *shown, last = command("ps", "--json").stdout.splitlines()

    assert {msgspec.json.decode(line)["id"].partition(".")[0] for line in shown} == {"alpha", "omega"}
    [unreadable] = msgspec.json.decode(last)["unreadable"]
    assert unreadable["what"] == "the limits of tree hurt"


def test_status_counts_the_intact_trees(command: Command, client: redis.Redis) -> None:
    client.delete("fdstore:{hurt}")
    client.set("fdstore:{hurt}", "x")

    shown = command("status")

    assert shown.exit_code == 0
    assert "2 trees" in shown.stdout
    assert "fdstore: the key fdstore:{hurt} cannot be read: WRONGTYPE" in shown.stderr
    [unreadable] = msgspec.json.decode(command("status", "--json").stdout)["store"]["unreadable"]
    assert unreadable["what"] == "the key fdstore:{hurt}"


def test_ls_shows_the_intact_descriptors(command: Command, client: redis.Redis) -> None:
    client.hset("fdstore:{hurt}:hurt:fd:1", "chars", "many")
    client.hset("fdstore:{hurt}:hurt:fds", "fd:2", "nothing")

    shown = command("ls", "hurt")

    assert shown.exit_code == 0
    assert {"fd:3", "ref:plan"} <= set(shown.stdout.split())
    assert len(shown.stderr.splitlines()) == 2
    assert "fd:2 of process hurt cannot be read: nothing is not a content of its tree" in shown.stderr


def test_a_huge_page_count_ends_a_cat_immediately(command: Command, client: redis.Redis) -> None:
    """Regression test: a list of all page numbers was built before the first request."""
    client.hset("fdstore:{hurt}:hurt:fd:1", "pages", 10**12)

    shown = command("cat", "hurt", "fd:1")

    assert (shown.exit_code, shown.stdout) == (1, "")
    assert shown.stderr.startswith("fdstore: store_lost_data: fd:1 of process hurt cannot be read")


def test_consistent_totals_that_disagree_with_the_pages_end_a_cat_immediately(
    command: Command, client: redis.Redis
) -> None:
    sizes = {"pages": 10**12, "bytes": 10**13, "chars": 10**13}
    client.hset("fdstore:{hurt}:hurt:fd:1", mapping=sizes)

    shown = command("cat", "hurt", "fd:1")

    assert shown.exit_code == 1
    assert is_typed_error(shown.stderr)


def test_following_a_content_shorter_than_its_totals_is_an_error(store: Store, client: redis.Redis) -> None:
    """Regression test: the rest was requested forever, without a pause."""
    length = len(store.process("hurt").read("fd:1", read_all=True).text.encode())
    client.hset("fdstore:{hurt}:hurt:fd:1", mapping={"chars": length + 1, "bytes": length + 1})

    with pytest.raises(DamagedRecord, match="fd:1 of process hurt"):
        list(store.process("hurt").follow("fd:1"))


def test_pipelines_that_read_each_other_have_no_chain(store: Store, client: redis.Redis) -> None:
    hurt = store.process("hurt")
    table = "fdstore:{hurt}:hurt.1:fds"
    client.hset(table, "fd:1", "hurt.1/7")

    with pytest.raises(DamagedRecord):
        store.run(pipelines.chain_of(store.process("hurt.1").handle, "fd:1"))
    assert hurt.id == "hurt"


def is_typed_error(stderr: str) -> bool:
    return stderr.startswith(("fdstore: store_lost_data: ", "fdstore: not_found: "))


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


# --- agents


def test_an_agent_recorded_as_a_fork_of_itself_fails_with_the_reason(
    store: Store, client: redis.Redis
) -> None:
    fork = ForkTask(of="hurt.6", records=1, call="c", prompt="p", copy=1, copies=1)
    client.lset("fdstore:{hurt}:hurt.6:journal", 0, encode_task(fork))
    keys = store.process("hurt.6").handle.keys

    with pytest.raises(DamagedRecord, match="copy of itself"):
        store.run(read_history(keys, client.lrange("fdstore:{hurt}:hurt.6:journal", 0, -1)))


def test_errors_about_damaged_records_name_the_key(store: Store, client: redis.Redis) -> None:
    client.delete("fdstore:{hurt}:hurt.2")
    client.set("fdstore:{hurt}:hurt.2", "x")

    with pytest.raises(DamagedRecord, match=r"the key fdstore:\{hurt\}:hurt.2 cannot be read: WRONGTYPE"):
        store.run(process_records.record("fdstore", "hurt.2"))
    with pytest.raises(DamagedRecord, match=r"a record of tree hurt cannot be read: WRONGTYPE .* \(claim\)"):
        store.run(leases.claim(process_keys("fdstore", "hurt.2"), "w"))


def test_the_library_logs_skipped_records(
    store: Store, client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    client.hset("fdstore:{hurt}:hurt.2", "state", "asleep")

    with caplog.at_level(logging.WARNING, "fdstore"):
        found = {process.id for process in store.processes()}

    assert "hurt.2" not in found
    assert "hurt.3" in found
    assert "the record of process hurt.2 cannot be read" in caplog.text
    assert [each.what for each in store.tree("hurt").unreadable] == ["the record of process hurt.2"]


# --- the operator's ceilings, which look at all trees


@pytest.mark.parametrize("value", ["many", "nan", b"\xff"])
def test_a_ceiling_for_all_trees_ignores_the_damaged_tree(
    store: Store, client: redis.Redis, value: str | bytes
) -> None:
    client.hset("fdstore:{hurt}", "bytes", value)
    client.zadd("fdstore:trees", {b"\xff": 5})

    store.run(ceilings.put("fdstore", "bytes", "1GB"))
    made = store.process("alpha").create("text")

    trees, size_bytes = store.run(ceilings.stored_bytes("fdstore"))
    assert (trees, made.chars) == (3, 4)
    assert size_bytes == sum(store.tree(tree).bytes for tree in ("alpha", "omega"))


def test_intact_trees_obey_a_ceiling_beside_a_damaged_one(store: Store, client: redis.Redis) -> None:
    client.hset("fdstore:{hurt}", "limits", "{")

    store.run(ceilings.put("fdstore", "tree_live", "5"))

    assert {store.tree(tree).limits.tree_live for tree in ("alpha", "omega")} == {5}
    assert client.hget("fdstore:{hurt}", "limits") == b"{"


def test_lowering_limits_keeps_limits_of_newer_versions(store: Store, client: redis.Redis) -> None:
    limits = msgspec.json.decode(client.hget("fdstore:{hurt}", "limits") or b"") | {"tree_tokens": 7}
    client.hset("fdstore:{hurt}", "limits", msgspec.json.encode(limits))

    changed = store.run(ceilings.put("fdstore", "tree_live", "5"))

    held = msgspec.json.decode(client.hget("fdstore:{hurt}", "limits") or b"")
    assert (changed, held["tree_live"], held["tree_tokens"]) == (3, 5, 7)
