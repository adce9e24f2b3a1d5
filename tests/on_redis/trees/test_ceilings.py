"""Ceilings set by the operator of a store: no program exceeds them, and existing trees follow changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import DamagedRecord, InvalidArgument, QuotaExceeded, SpawnLimit
from fdstore.model.records import TreeLimits
from fdstore.store.keys import TreeKeys
from fdstore.store.processes import processes
from fdstore.store.trees import ceilings
from fdstore.store.trees.ceilings import half_of
from tests.waiting import concurrently

Execute = Callable[..., Any]


def expire_ceilings(*handles: Process) -> None:
    """Make these clients read the ceilings again, as after a minute."""
    for proc in handles:
        proc.handle.ceilings_due_at = 0.0


# new trees


def test_a_tree_that_requests_more_than_the_ceiling_gets_the_ceiling(store: Store) -> None:
    store.run(ceilings.put("fdstore", "tree_fds", "1"))
    store.run(ceilings.put("fdstore", "tree_live", "2"))

    proc = store.process("t", limits=TreeLimits(tree_fds=50, tree_depth=3))

    held = store.tree("t").limits
    assert (held.tree_fds, held.tree_live, held.tree_depth) == (1, 2, 3)
    proc.create("x")
    proc.child()
    with pytest.raises(QuotaExceeded, match="tree_fds of this tree is 1"):
        proc.create("y")
    with pytest.raises(SpawnLimit, match="tree_live of this tree is 2"):
        proc.child()


def test_no_more_trees_are_created_than_the_ceiling_allows(store: Store) -> None:
    store.run(ceilings.put("fdstore", "trees", "2"))
    store.process("a")
    store.process("b")

    with pytest.raises(QuotaExceeded, match="ceiling trees of this store is 2"):
        store.process("c")

    assert [tree.id for tree in store.trees()] == ["a", "b"]
    assert store.process("a").create("goes on").fd == "fd:1"


def test_a_tree_past_its_retention_makes_room_for_another(store: Store, execute: Execute) -> None:
    store.run(ceilings.put("fdstore", "trees", "1"))
    store.process("old")
    execute("HSET", "fdstore:{old}", "used_at", "1000000000")
    execute("ZADD", "fdstore:trees", "1000000000", "old")

    store.process("new")

    assert [tree.id for tree in store.trees()] == ["new"]


def test_concurrent_clients_create_no_more_trees_than_the_ceiling_allows(
    store: Store, redis_url: str
) -> None:
    store.run(ceilings.put("fdstore", "trees", "5"))

    def make(number: int) -> bool:
        try:
            store.process(f"t{number}")
        except QuotaExceeded:
            return False
        return True

    made = concurrently(*(partial(make, number) for number in range(20)))

    assert len(store.trees()) == sum(made) <= 5


def test_an_unreadable_ceiling_blocks_new_trees_but_not_existing_ones(store: Store, execute: Execute) -> None:
    proc = store.process("t")
    execute("HSET", "fdstore:limits", "tree_live", "sixteen")
    expire_ceilings(proc)

    with pytest.raises(InvalidArgument, match="ceiling tree_live: 'sixteen' is not"):
        store.process("u")

    assert proc.create("goes on").fd == "fd:1"


# half of the memory


def test_a_tree_at_its_default_limit_leaves_the_other_half_of_redis_usable(
    store: Store, execute: Execute
) -> None:
    [used] = [line for line in execute("INFO", "memory").split(b"\r\n") if line.startswith(b"used_memory:")]
    maxmemory = 12_000_000 + int(used.partition(b":")[2])
    execute("CONFIG", "SET", "maxmemory", maxmemory)
    try:
        greedy = store.process("greedy")
        text = "a line of text, neither short nor long\n" * 6_000

        def fill() -> None:
            while True:
                greedy.create(text)

        with pytest.raises(QuotaExceeded, match="tree_bytes"):
            fill()

        modest = store.process("modest")
        others = [modest.create(text) for _ in range(18)]
    finally:
        execute("CONFIG", "SET", "maxmemory", 0)

    assert store.tree("greedy").limits.tree_bytes == half_of(maxmemory)
    assert store.tree("greedy").bytes > half_of(maxmemory) - len(text)
    assert sum(each.bytes for each in others) > 4_000_000


@pytest.mark.parametrize(
    ("maxmemory", "asked", "ceiling", "held"),
    [
        (2_000_000_000, 4 << 30, None, half_of(2_000_000_000)),
        (2_000_000_000, 1000, None, 1000),
        (2_000_000_000, 4 << 30, "1500MB", 1_500_000_000),
        (2_000_000_000, 4 << 30, "none", 4 << 30),
        (2**53, 2**53, None, half_of(2**53)),
        (0, 4 << 30, None, 4 << 30),
        (0, 4 << 30, "5MB", 5_000_000),
    ],
)
def test_tree_bytes_are_capped_at_half_of_maxmemory_unless_the_operator_sets_a_ceiling(
    store: Store, execute: Execute, maxmemory: int, asked: int, ceiling: str | None, held: int
) -> None:
    if ceiling:
        store.run(ceilings.put("fdstore", "tree_bytes", ceiling))
    execute("CONFIG", "SET", "maxmemory", maxmemory)
    try:
        store.process("t", limits=TreeLimits(tree_bytes=asked))
    finally:
        execute("CONFIG", "SET", "maxmemory", 0)

    assert store.tree("t").limits.tree_bytes == held


# existing trees


def test_existing_trees_obey_a_new_ceiling_immediately_and_regain_their_own_limits_after(
    store: Store,
) -> None:
    proc = store.process("t", limits=TreeLimits(tree_fds=10))
    store.process("u", limits=TreeLimits(tree_fds=3))
    proc.create("x")

    lowered = store.run(ceilings.put("fdstore", "tree_fds", "1"))
    with pytest.raises(QuotaExceeded):
        proc.create("y")
    raised = store.run(ceilings.put("fdstore", "tree_fds", "5"))

    assert (lowered, raised) == (2, 2)
    assert [tree.limits.tree_fds for tree in store.trees()] == [5, 3]
    store.run(ceilings.put("fdstore", "tree_fds", None))
    assert [tree.limits.tree_fds for tree in store.trees()] == [10, 3]
    assert proc.create("y").fd == "fd:2"


def test_a_ceiling_set_in_redis_directly_applies_within_a_minute(store: Store, execute: Execute) -> None:
    proc = store.process("t")
    execute("HSET", "fdstore:limits", "tree_fds", "2")
    proc.create("read a moment ago")
    expire_ceilings(proc)

    proc.create("reads them beside this")

    assert store.tree("t").limits.tree_fds == 2
    assert proc.handle.limits.tree_fds == 2
    with pytest.raises(QuotaExceeded):
        proc.create("too many")


@pytest.mark.parametrize("work", ["create", "ingest", "child", "fork", "open_stream"])
def test_every_operation_that_creates_something_reads_the_ceilings(
    store: Store, execute: Execute, work: str, tmp_path: Any
) -> None:
    (tmp_path / "file").write_text("text")
    proc = store.process("t")
    execute("HSET", "fdstore:limits", "tree_live", "9")
    expire_ceilings(proc)

    match work:
        case "create":
            proc.create("x")
        case "ingest":
            proc.ingest(tmp_path / "file")
        case "open_stream":
            proc.open_stream().end()
        case _:
            getattr(proc, work)()

    assert store.tree("t").limits.tree_live == 9


def test_a_tree_of_an_older_version_gets_its_missing_limits(store: Store, execute: Execute) -> None:
    store.process("t")
    execute("HSET", "fdstore:{t}", "limits", '{"tree_depth":8,"tree_live":64,"tree_processes":1000,'
        '"tree_fds":10000,"tree_bytes":4294967296,"retention_days":7}')  # fmt: skip

    store.process("t").create("x")

    assert json.loads(execute("HGET", "fdstore:{t}", "limits"))["tree_export_bytes"] == 1 << 30


def test_applying_ceilings_does_not_recreate_a_removed_tree(store: Store, execute: Execute) -> None:
    proc = store.process("t")
    store.run(processes.cancel("fdstore", "t"))
    record = TreeKeys("fdstore", "t").record
    execute("UNLINK", record, f"{record}:processes", f"{record}:t", f"{record}:leases")

    store.run(ceilings.put("fdstore", "tree_fds", "1"))

    assert execute("EXISTS", record) == 0
    assert proc.id == "t"


# all trees together


def test_all_trees_together_hold_no_more_than_the_ceiling(store: Store) -> None:
    a, b = store.process("a"), store.process("b")
    a.create("x" * 600)
    store.run(ceilings.put("fdstore", "bytes", "1kB"))

    b.create("y" * 300)
    with pytest.raises(QuotaExceeded, match="ceiling bytes of this store is 1000"):
        b.create("y" * 200)
    expire_ceilings(a, b)
    b.create("")
    with pytest.raises(QuotaExceeded, match="ceiling bytes"):
        store.process("c").create("z" * 101)

    assert store.process("c").create("z" * 100).bytes == 100
    with pytest.raises(QuotaExceeded, match="ceiling bytes"), b.open_stream() as stream:
        stream.write("s" * 500)
    store.run(ceilings.put("fdstore", "bytes", None))
    assert b.create("y" * 5000).bytes == 5000


def test_bytes_stored_by_other_clients_count_within_a_minute(store: Store, execute: Execute) -> None:
    a, b = store.process("a"), store.process("b")
    store.run(ceilings.put("fdstore", "bytes", "1kB"))
    a.create("x" * 900)
    expire_ceilings(b)
    execute("HSET", "fdstore:{b}", "bytes_room_at", "1000000000")

    b.create("y" * 100)

    with pytest.raises(QuotaExceeded, match="ceiling bytes"):
        b.create("y")
    with pytest.raises(QuotaExceeded, match="ceiling bytes"):
        store.process("b").create("y")


# the store keeps working


def test_a_client_that_cannot_read_the_ceilings_keeps_writing(store: Store, execute: Execute) -> None:
    proc = store.process("t")
    execute("SET", "fdstore:limits", "no hash")
    expire_ceilings(proc)
    try:
        assert proc.create("goes on").fd == "fd:1"
        with pytest.raises(DamagedRecord, match="fdstore:limits"):
            store.process("u")
    finally:
        execute("DEL", "fdstore:limits")
