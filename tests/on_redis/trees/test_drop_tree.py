"""Trees are dropped at once with all their keys, and nothing of other trees."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
import redis

import fdstore
import fdstore.aio
from fdstore.client import Process, Store
from fdstore.errors import Fenced, NewerFormat, NotFound, TreeInUse
from fdstore.store.keys import TreeKeys
from fdstore.store.processes import dropping, leases, processes
from fdstore.store.trees import collect_trees
from tests.on_redis.child_agents import agent
from tests.round_trips import killed_after, one_request
from tests.stored_keys import lasting_keys
from tests.waiting import concurrently, wait_until


def leftovers(execute: Any, tree: str) -> list[bytes]:
    return lasting_keys(execute, f"fdstore:{{{tree}}}*")


def create_many(store: Store, count: int) -> None:
    """Create the tree `many` with so many contents."""
    proc = store.process("many")
    for number in range(count):
        proc.create(str(number))


def create_filled_tree(store: Store, name: str) -> Process:
    """Create a tree with all kinds of keys: texts, names, a stream, children, an ended process."""
    proc = store.process(name)
    proc.create("text\n" * 1000)
    proc.ingest(io.BytesIO(b"line\n" * 400_000), "large")
    proc.child(share=["fd:1"]).create("more")
    proc.fork().end()
    writer = proc.open_stream()
    writer.write("half")
    writer.flush()
    store.run(processes.cancel("fdstore", f"{name}.1"))
    return proc


def test_dropping_a_tree_removes_all_its_keys_and_no_others(store: Store, execute: Any) -> None:
    create_filled_tree(store, "old")
    other = create_filled_tree(store, "other")

    dropped = store.drop_tree("old")

    assert (dropped.tree, dropped.contents, dropped.cancelled) == ("old", 4, ())
    assert leftovers(execute, "old") == []
    assert execute("ZRANGE", "fdstore:trees", 0, -1) == [b"other"]
    assert other.read("fd:1").text == "text\n" * 800


def test_dropping_an_unknown_tree_is_an_error_that_names_the_existing_ones(store: Store) -> None:
    store.process("triage")

    with pytest.raises(NotFound, match=r"tree old .*triage"):
        store.drop_tree("old")


@pytest.mark.parametrize("state", ["ready", "running", "waiting"])
def test_a_tree_with_unfinished_agents_is_dropped_only_with_kill(
    store: Store, proc: Process, execute: Any, state: str
) -> None:
    proc.create("x")
    child = agent(store, proc, state)
    before = store.tree("triage")

    with pytest.raises(TreeInUse, match=rf"triage\.1 is {state}.*fdstore kill triage") as caught:
        store.drop_tree("triage")
    assert caught.value.type == "conflict"
    assert store.tree("triage") == before

    dropped = store.drop_tree("triage", kill=True)

    assert child.id in dropped.cancelled
    assert leftovers(execute, "triage") == []
    with pytest.raises((Fenced, NotFound)):
        store.run(leases.renew(child))


def test_reading_a_stream_of_a_dropped_tree_is_an_error(store: Store, proc: Process) -> None:
    writer = proc.open_stream()
    writer.write("text")
    writer.flush()
    follower = store.process("triage").follow(writer.fd)
    assert next(follower) == "text"

    store.drop_tree("triage")

    with pytest.raises(fdstore.FDStoreError):
        next(follower)
    with pytest.raises(fdstore.FDStoreError):
        writer.end()


def test_dropping_a_tree_in_a_full_redis_frees_its_memory(
    store: Store, execute: Any, fill_redis: Callable[[], None]
) -> None:
    proc = store.process("old")
    for _ in range(20):
        proc.create("x" * 500_000)
    agent(store, proc)
    used = used_memory(execute)
    fill_redis()

    dropped = store.drop_tree("old", kill=True)

    assert dropped.contents == 20
    wait_until(lambda: used_memory(execute) <= used - 9_000_000)  # Redis frees it in a background thread


def used_memory(execute: Any) -> int:
    info = execute("INFO", "memory").decode()
    return int(info.partition("used_memory:")[2].split()[0])


def test_an_interrupted_drop_is_finished_by_the_next_drop(store: Store, execute: Any) -> None:
    create_many(store, 2 * collect_trees.PIECE + 7)
    killed_after(store, dropping.drop_tree("fdstore", "many"), 2)
    assert leftovers(execute, "many") != []

    store.drop_tree("many")

    assert leftovers(execute, "many") == []
    assert store.trees() == []
    with pytest.raises(NotFound):
        store.drop_tree("many")


def test_an_interrupted_drop_is_finished_by_the_collector(store: Store, execute: Any) -> None:
    create_many(store, collect_trees.PIECE + 7)
    killed_after(store, dropping.drop_tree("fdstore", "many"), 2)
    assert leftovers(execute, "many") != []

    for tree in store.run(collect_trees.due_trees("fdstore")):
        store.run(collect_trees.collect_tree(tree))

    assert leftovers(execute, "many") == []
    assert execute("EXISTS", "fdstore:trees") == 0


def test_a_drop_in_progress_does_not_touch_a_new_tree_of_the_same_name(store: Store, execute: Any) -> None:
    create_many(store, collect_trees.PIECE + 7)
    under_way = dropping.drop_tree("fdstore", "many")
    request = next(under_way)
    for _ in range(2):
        request = under_way.send(store.run(one_request(request)))

    store.process("many").create("new")
    try:
        while True:
            request = under_way.send(store.run(one_request(request)))
    except StopIteration as done:
        dropped = done.value

    assert dropped.contents == collect_trees.PIECE
    assert store.process("many").read("fd:508").text == "new"
    assert [tree.id for tree in store.trees()] == ["many"]


@pytest.mark.thorough("thousands of processes")
def test_a_tree_of_thousands_of_processes_is_dropped_in_steps(store: Store, execute: Any) -> None:
    proc = store.process("old", limits=fdstore.TreeLimits(tree_live=10_000, tree_processes=10_000))
    proc.create("shared")
    for number in range(1, 3500):
        execute("ZADD", "fdstore:{old}:processes", time.time() + number, f"old.{number}")
        execute("HSET", f"fdstore:{{old}}:old.{number}", "state", "open")
        execute("HSET", f"fdstore:{{old}}:old.{number}:fds", "fd:1", "old/1")
        execute("SADD", "fdstore:{old}:old:fd:1:holders", f"old.{number}")
    progress: list[int] = []

    dropped = store.drop_tree("old", progress=progress.append)

    assert (dropped.contents, progress) == (1, [0, 0, 1])
    assert leftovers(execute, "old") == []


def test_a_tree_with_a_damaged_record_can_be_dropped(store: Store, execute: Any) -> None:
    create_filled_tree(store, "old")
    execute("HSET", "fdstore:{old}", "limits", "{", "used_at", "?")
    execute("DEL", "fdstore:{old}:leases")
    execute("SET", "fdstore:{old}:leases", "no zset")

    store.drop_tree("old")

    assert leftovers(execute, "old") == []


def test_a_tree_of_a_newer_fdstore_is_not_dropped(store: Store, execute: Any) -> None:
    create_filled_tree(store, "old")
    execute("HSET", "fdstore:{old}", "format", "99")
    keys = set(leftovers(execute, "old"))

    with pytest.raises(NewerFormat):
        store.drop_tree("old", kill=True)

    execute("HSET", "fdstore:{old}", "format", "1")
    assert set(leftovers(execute, "old")) == keys
    assert store.tree("old").live == 1


def test_dropping_a_tree_removes_its_unfinished_uploads(
    store: Store, proc: Process, execute: Any, cut_off_upload: Callable[[], None]
) -> None:
    cut_off_upload()
    assert execute("KEYS", "*:staging:*") != []

    store.drop_tree("triage")

    assert execute("KEYS", "*:staging*") == []


@pytest.mark.thorough("thousands of descriptors")
def test_ten_thousand_descriptors_are_dropped_in_steps_that_do_not_block_redis(
    redis_url: str, store: Store, proc: Process, execute: Any
) -> None:
    proc.create("first")
    batch: list[Any] = []
    for number in range(2, 10_001):
        record = f"fdstore:{{triage}}:triage:fd:{number}"
        batch += [
            ("HSET", record, "bytes", 1, "state", "sealed"),
            ("HSET", f"{record}:pages", 1, "x"),
            ("HSET", f"{record}:index", 1, "0 0"),
            ("SADD", f"{record}:holders", "triage"),
            ("SADD", "fdstore:{triage}:contents", f"triage/{number}"),
            ("HSET", "fdstore:{triage}:triage:fds", f"fd:{number}", f"triage/{number}"),
        ]
    with redis.Redis.from_url(redis_url) as client:
        with client.pipeline(transaction=False) as pipe:
            for command in batch:
                pipe.execute_command(*command)
            pipe.execute()
        progress: list[int] = []

        dropped = store.drop_tree("triage", progress=progress.append)

    steps = [after - before for before, after in pairwise([0, *progress])]
    assert dropped.contents == sum(steps) == 10_000
    assert 0 <= min(steps) <= max(steps) <= collect_trees.PIECE  # other clients have their turn in between
    assert leftovers(execute, "triage") == []


def test_two_concurrent_drops_of_one_tree_both_succeed(redis_url: str, store: Store, execute: Any) -> None:
    create_many(store, collect_trees.PIECE + 7)

    def drop() -> None:
        with fdstore.connect(redis_url) as other, suppress(NotFound):  # if the other one was faster
            other.drop_tree("many")

    concurrently(drop, drop)

    assert leftovers(execute, "many") == []
    assert TreeKeys("fdstore", "many").tree not in [tree.id for tree in store.trees()]
