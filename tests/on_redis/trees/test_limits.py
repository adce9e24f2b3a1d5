"""The limits of a tree, and the errors for exceeding them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fdstore.client import Store
from fdstore.errors import InvalidArgument, QuotaExceeded, SpawnLimit
from fdstore.model.records import TreeLimits


def test_a_tree_has_the_documented_default_limits(store: Store) -> None:
    store.process("t")

    limits = store.tree("t").limits

    assert (limits.tree_depth, limits.tree_live, limits.tree_processes) == (8, 64, 1000)
    assert (limits.tree_fds, limits.tree_bytes, limits.retention_days) == (10_000, 4 << 30, 7)


@pytest.mark.parametrize("limits", ["1", 5, {"tree_fds": 1}, 1.5], ids=repr)
def test_limits_of_another_type_are_refused(store: Store, limits: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^limits: fdstore.TreeLimits\(...\) is needed, not "):
        store.process("t", limits=limits)

    assert store.trees() == []


def test_limits_are_fixed_when_the_tree_is_created(store: Store) -> None:
    store.process("t", limits=TreeLimits(tree_fds=1)).create("x")

    again = store.process("t", limits=TreeLimits(tree_fds=5))

    assert store.tree("t").limits.tree_fds == 1
    with pytest.raises(QuotaExceeded):
        again.create("y")


def test_one_content_more_than_allowed_is_refused(store: Store) -> None:
    proc = store.process("t", limits=TreeLimits(tree_fds=2))
    proc.create("one")
    child = proc.child(share=["fd:1"])
    child.create("two")

    for process in (proc, child):
        with pytest.raises(QuotaExceeded, match="tree_fds of this tree is 2"):
            process.create("three")
    child.end()

    assert proc.create("three").fd == "fd:2"


def test_shared_descriptors_do_not_count_against_limits(store: Store) -> None:
    proc = store.process("t", limits=TreeLimits(tree_fds=1, tree_bytes=3))
    proc.create("abc")

    twins = [proc.fork() for _ in range(5)]

    assert all(twin.read("fd:1").text == "abc" for twin in twins)


def test_a_tree_may_hold_exactly_its_limit_of_utf8_bytes(store: Store) -> None:
    proc = store.process("t", limits=TreeLimits(tree_bytes=6))

    proc.create("éé")
    proc.create("ab")

    with pytest.raises(QuotaExceeded, match="tree_bytes of this tree is 6"):
        proc.create("c")
    assert proc.create("").chars == 0
    proc.close("fd:2")
    assert proc.create("c").chars == 1


def test_an_extraction_counts_as_a_content(store: Store) -> None:
    proc = store.process("t", limits=TreeLimits(tree_bytes=10))
    proc.create("1234567")

    with pytest.raises(QuotaExceeded):
        proc.extract("fd:1#C1-4")
    assert proc.extract("fd:1#C1-3").chars == 3


def test_the_root_counts_towards_the_depth_limit(store: Store) -> None:
    proc = store.process("t", limits=TreeLimits(tree_depth=3))
    grandchild = proc.child().child()

    for attempt in (grandchild.child, grandchild.fork):
        with pytest.raises(SpawnLimit, match="tree_depth of this tree is 3"):
            attempt()


def test_tree_live_limits_the_processes_alive(store: Store) -> None:
    proc = store.process("t", limits=TreeLimits(tree_live=3))
    first = proc.child()
    proc.fork()

    with pytest.raises(SpawnLimit, match="tree_live of this tree is 3"):
        first.child()
    first.end()

    assert proc.child().id == "t.3"


def test_tree_processes_limits_the_processes_ever_created(store: Store) -> None:
    proc = store.process("t", limits=TreeLimits(tree_processes=3))
    proc.child().end()
    proc.child().end()

    with pytest.raises(SpawnLimit, match="tree_processes of this tree is 3"):
        proc.child()


def test_a_refused_child_leaves_nothing(store: Store) -> None:
    proc = store.process("t", limits=TreeLimits(tree_live=1))
    proc.create("x")

    with pytest.raises(SpawnLimit):
        proc.fork()

    tree = store.tree("t")
    assert (tree.processes, tree.live, len(tree.members)) == (1, 1, 1)


@pytest.mark.parametrize("name", ["tree_depth", "tree_live", "tree_processes", "tree_fds", "tree_bytes"])
@pytest.mark.parametrize("value", [0, -1, True, 1.0, "5", None, 2**53 + 1])
def test_invalid_limits_are_refused(store: Store, name: str, value: Any) -> None:
    with pytest.raises(InvalidArgument, match=name):
        store.process("t", limits=TreeLimits(**{name: value}))
    assert store.trees() == []


@pytest.mark.parametrize("days", [-1, math.nan, math.inf, True, "7", None, 1e7])
def test_a_retention_is_a_number_of_days(store: Store, days: Any) -> None:
    with pytest.raises(InvalidArgument, match="retention_days"):
        store.process("t", limits=TreeLimits(retention_days=days))
