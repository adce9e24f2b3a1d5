"""A damaged tree beside healthy ones, defect by defect: each of these once stopped all trees, or hung.

The whole product of keys, fields and values is in `test_damaged_records`.
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
from fdstore.store import ceilings, collect, leases, pipelines, process_records, processes
from fdstore.store.clock import redis_now
from fdstore.store.keys import process_keys
from fdstore.tools.process_task import ForkTask, encode_task
from fdstore_workers.sweeper import Sweeper, collect_due, sweep
from tests.on_redis.damage import Town
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def whole_town(redis_server: PrivateServer) -> Iterator[Town]:
    redis_server.start()
    with redis.Redis.from_url(redis_server.url) as client, fdstore.connect(redis_server.url) as store:
        yield Town(store, client)
        client.flushall()


@pytest.fixture
def town(whole_town: Town) -> Town:
    whole_town.restore()
    return whole_town


@pytest.fixture
def store(town: Town) -> Store:
    return town.store


@pytest.fixture
def client(town: Town) -> redis.Redis:
    return town.client


Command = Callable[..., Result]


@pytest.fixture
def command(town: Town) -> Command:
    """A command on the damaged store, in this process."""

    def call(*arguments: str) -> Result:
        done = CliRunner().invoke(cli, ["--url", town.store.url, *arguments])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    return call


def swept(store: Store) -> set[str]:
    """The trees in which a sweep an hour from now wakes somebody."""
    woken: list[str] = []
    sweep(store, woken.append, store.run(redis_now()) + 3600)
    return {process.partition(".")[0] for process in woken}


# --- the sweep


def test_a_byte_among_the_leases_of_a_tree_stops_no_sweep(
    store: Store, client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    client.zadd("fdstore:{hurt}:leases", {b"\xff": 0})

    assert swept(store) == {"alpha", "hurt", "omega"}
    problem = "\\xff is not a process of this tree (tree hurt)"
    assert f"fdstore:{{hurt}}:leases is skipped: {problem}" in caplog.text


def test_leases_of_another_type_leave_the_other_trees_swept(store: Store, client: redis.Redis) -> None:
    client.delete("fdstore:{hurt}:leases")
    client.set("fdstore:{hurt}:leases", "x")

    assert swept(store) == {"alpha", "omega"}


def test_the_leases_of_one_tree_never_name_a_process_of_another(store: Store, client: redis.Redis) -> None:
    client.zadd("fdstore:{hurt}:leases", {"omega.3": 0})

    found = store.run(leases.find_due("fdstore", ["hurt"], store.run(redis_now())))

    assert {keys.tree.tree for keys in found.processes} == {"hurt"}
    assert "omega.3 is not a process of this tree" in found.unreadable[0][1].problem


@pytest.mark.parametrize("lease_until", ["nan", "inf", "1000000000000", "-1", "", "soon"])
def test_a_process_with_an_impossible_lease_is_lost_like_one_that_ran_out(
    store: Store, client: redis.Redis, lease_until: str
) -> None:
    client.hset("fdstore:{hurt}:hurt.3", "lease_until", lease_until)
    client.zadd("fdstore:{hurt}:leases", {"hurt.3": 1})

    sweep(store, lambda _: None)

    record = store.run(process_records.record("fdstore", "hurt.3"))
    assert (record.state, record.losses) == ("ready", 1)


def test_losses_that_are_no_number_count_from_zero(store: Store, client: redis.Redis) -> None:
    client.hset("fdstore:{hurt}:hurt.3", mapping={"losses": "nan", "lease_until": "1"})
    client.zadd("fdstore:{hurt}:leases", {"hurt.3": 1})

    sweep(store, lambda _: None)

    record = store.run(process_records.record("fdstore", "hurt.3"))
    assert (record.state, record.losses) == ("ready", 1)


class Rounds:
    """A real sweeper, and how often it swept a process that is always due."""

    def __init__(self, store: Store, wake: Callable[[str], None]) -> None:
        self.sweeper = Sweeper(store, "here:1", wake)

    def __enter__(self) -> Rounds:
        self.sweeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.sweeper.stop()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEASE_S", "SWEEP_EVERY_S", "WAKE_AGAIN_S"):
        monkeypatch.setattr(leases, name, getattr(leases, name) / 200)


@pytest.mark.usefixtures("quick")
def test_the_sweeper_goes_on_after_an_exception_that_nobody_thought_of(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread ended, and the worker lived on without a sweep."""
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


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("key", ["workers", "sweeper", "workers:commands", "workers:agents"])
def test_damaged_records_of_the_workers_stop_no_sweep(store: Store, client: redis.Redis, key: str) -> None:
    client.hset("fdstore:sweeper" if key == "sweeper" else "fdstore:other", "x", "y")
    if key != "sweeper":
        client.set(f"fdstore:{key}", "x")
    woken: list[str] = []

    with Rounds(store, woken.append):
        wait_until(lambda: {"alpha", "omega"} <= {process.partition(".")[0] for process in woken})


# --- what people look at


def test_ps_shows_all_other_processes_and_says_which_it_cannot_read(
    command: Command, client: redis.Redis
) -> None:
    client.hset("fdstore:{hurt}:hurt.2", "started_at", "never")

    shown = command("ps")

    assert shown.exit_code == 0
    assert {"alpha.2", "omega.2", "hurt.3"} <= {word for word in shown.output.split() if "." in word}
    problem = "the record of process hurt.2 cannot be read: could not convert string to float: 'never'"
    assert shown.stderr == f"fdstore: {problem}\n"


def test_ps_with_json_lists_what_is_unreadable_last(command: Command, client: redis.Redis) -> None:
    client.hset("fdstore:{hurt}", "limits", "{")

    *shown, last = command("ps", "--json").stdout.splitlines()

    assert {msgspec.json.decode(line)["id"].partition(".")[0] for line in shown} == {"alpha", "omega"}
    [unreadable] = msgspec.json.decode(last)["unreadable"]
    assert unreadable["what"] == "the limits of tree hurt"


def test_status_counts_the_other_trees(command: Command, client: redis.Redis) -> None:
    client.delete("fdstore:{hurt}")
    client.set("fdstore:{hurt}", "x")

    shown = command("status")

    assert shown.exit_code == 0
    assert "2 trees" in shown.stdout
    assert "fdstore: the key fdstore:{hurt} cannot be read: WRONGTYPE" in shown.stderr
    [unreadable] = msgspec.json.decode(command("status", "--json").stdout)["store"]["unreadable"]
    assert unreadable["what"] == "the key fdstore:{hurt}"


def test_ls_shows_the_other_descriptors(command: Command, client: redis.Redis) -> None:
    client.hset("fdstore:{hurt}:hurt:fd:1", "chars", "many")
    client.hset("fdstore:{hurt}:hurt:fds", "fd:2", "nothing")

    shown = command("ls", "hurt")

    assert shown.exit_code == 0
    assert {"fd:3", "ref:plan"} <= set(shown.stdout.split())
    assert len(shown.stderr.splitlines()) == 2
    assert "fd:2 of process hurt cannot be read: nothing is not a content of its tree" in shown.stderr


def test_a_page_count_in_the_millions_of_millions_ends_a_cat_at_once(
    command: Command, client: redis.Redis
) -> None:
    """It made a list of all of them before the first was asked for."""
    client.hset("fdstore:{hurt}:hurt:fd:1", "pages", 10**12)

    shown = command("cat", "hurt", "fd:1")

    assert (shown.exit_code, shown.stdout) == (1, "")
    assert shown.stderr.startswith("fdstore: store_lost_data: fd:1 of process hurt cannot be read")


def test_sizes_that_fit_each_other_and_not_the_pages_end_a_cat_at_once(
    command: Command, client: redis.Redis
) -> None:
    sizes = {"pages": 10**12, "bytes": 10**13, "chars": 10**13}
    client.hset("fdstore:{hurt}:hurt:fd:1", mapping=sizes)

    shown = command("cat", "hurt", "fd:1")

    assert shown.exit_code == 1
    assert re_typed(shown.stderr)


def test_a_follower_of_a_content_that_is_shorter_than_it_says_is_told(
    store: Store, client: redis.Redis
) -> None:
    """It asked for the rest for ever, without a pause."""
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


def re_typed(stderr: str) -> bool:
    return stderr.startswith(("fdstore: store_lost_data: ", "fdstore: not_found: "))


# --- the end of a tree


def test_a_kill_goes_by_the_processes_there_are_and_not_by_the_next_number(
    store: Store, client: redis.Redis
) -> None:
    """It went through 50 million numbers, and Redis served nobody meanwhile."""
    client.hset("fdstore:{hurt}:hurt", "next_child", 50_000_000)

    done = store.run(processes.cancel("fdstore", "hurt"))

    assert set(done.cancelled) == {"hurt", "hurt.1", "hurt.2", "hurt.3", "hurt.4", "hurt.4.1", "hurt.6"}
    assert {member.state for member in store.tree("hurt").members} <= ENDED


def test_a_kill_ends_all_but_what_cannot_be_written_and_names_that(
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
def test_a_process_ends_whatever_is_wrong_with_what_it_holds(
    store: Store, client: redis.Redis, process: str, part: str
) -> None:
    client.delete(f"fdstore:{{hurt}}:{process}:{part}")
    client.set(f"fdstore:{{hurt}}:{process}:{part}", "x")

    store.run(processes.cancel("fdstore", process))

    assert store.run(process_records.record("fdstore", process)).state == "cancelled"


@pytest.mark.parametrize("used_at", ["nan", "", "-1", "long ago"])
def test_a_tree_is_not_collected_for_a_last_use_that_cannot_be_read(
    store: Store, client: redis.Redis, used_at: str
) -> None:
    """NaN is not after now, so a tree in use was removed."""
    store.run(processes.cancel("fdstore", "hurt"))
    client.hset("fdstore:{hurt}", "used_at", used_at)
    client.zadd("fdstore:trees", {"hurt": 0})

    collect_due(store)

    assert client.exists("fdstore:{hurt}:hurt:fd:1")


def test_gc_names_a_damaged_tree_and_removes_the_others_that_are_due(
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


def test_damaged_trees_do_not_keep_new_ones_from_being_made_or_old_ones_from_going(
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
    assert store.run(collect.due_trees("fdstore")) == []


# --- agents


def test_an_agent_that_is_a_copy_of_itself_fails_and_says_why(store: Store, client: redis.Redis) -> None:
    fork = ForkTask(of="hurt.6", records=1, call="c", prompt="p", copy=1, copies=1)
    client.lset("fdstore:{hurt}:hurt.6:journal", 0, encode_task(fork))
    keys = store.process("hurt.6").handle.keys

    with pytest.raises(DamagedRecord, match="copy of itself"):
        store.run(read_history(keys, client.lrange("fdstore:{hurt}:hurt.6:journal", 0, -1)))


def test_the_errors_of_damaged_records_say_which_key_it_is(store: Store, client: redis.Redis) -> None:
    client.delete("fdstore:{hurt}:hurt.2")
    client.set("fdstore:{hurt}:hurt.2", "x")

    with pytest.raises(DamagedRecord, match=r"the key fdstore:\{hurt\}:hurt.2 cannot be read: WRONGTYPE"):
        store.run(process_records.record("fdstore", "hurt.2"))
    with pytest.raises(DamagedRecord, match=r"a record of tree hurt cannot be read: WRONGTYPE .* \(claim\)"):
        store.run(leases.claim(process_keys("fdstore", "hurt.2"), "w"))


def test_the_library_logs_what_it_passes_over(
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
def test_a_ceiling_for_all_trees_is_counted_without_the_damaged_one(
    store: Store, client: redis.Redis, value: str | bytes
) -> None:
    client.hset("fdstore:{hurt}", "bytes", value)
    client.zadd("fdstore:trees", {b"\xff": 5})

    store.run(ceilings.put("fdstore", "bytes", "1GB"))
    made = store.process("alpha").create("text")

    trees, size_bytes = store.run(ceilings.stored_bytes("fdstore"))
    assert (trees, made.chars) == (3, 4)
    assert size_bytes == sum(store.tree(tree).bytes for tree in ("alpha", "omega"))


def test_a_ceiling_is_obeyed_by_the_other_trees(store: Store, client: redis.Redis) -> None:
    client.hset("fdstore:{hurt}", "limits", "{")

    store.run(ceilings.put("fdstore", "tree_live", "5"))

    assert {store.tree(tree).limits.tree_live for tree in ("alpha", "omega")} == {5}
    assert client.hget("fdstore:{hurt}", "limits") == b"{"


def test_lowering_limits_keeps_those_that_only_a_newer_version_knows(
    store: Store, client: redis.Redis
) -> None:
    limits = msgspec.json.decode(client.hget("fdstore:{hurt}", "limits") or b"") | {"tree_tokens": 7}
    client.hset("fdstore:{hurt}", "limits", msgspec.json.encode(limits))

    changed = store.run(ceilings.put("fdstore", "tree_live", "5"))

    held = msgspec.json.decode(client.hget("fdstore:{hurt}", "limits") or b"")
    assert (changed, held["tree_live"], held["tree_tokens"]) == (3, 5, 7)
