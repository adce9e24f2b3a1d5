"""The cost of the sweep and of gc per tree, with few and with many trees.

A pass of the sweep queries all trees in one batch, and gc collects those that are due; the cost per tree must
not grow with their number. The sweep itself is part of the workers: measured here are its queries when
nothing is due, the usual case.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

from fdstore.bench.measuring import Lap, Row, at_most, slower, take_turns
from fdstore.bench.stage import Stage
from fdstore.client import Store, connect
from fdstore.store import tree_facts
from fdstore.store.clock import redis_now
from fdstore.store.keys import TreeKeys
from fdstore.store.processes import leases, process_records
from fdstore.store.streams import due_streams
from fdstore.store.trees import collect_trees

DESCRIPTORS = 3
"""Descriptors of each tree's process."""

DUE = 10
"""Trees that are collected per repetition, besides those that stay."""


def rows(stage: Stage) -> Iterator[Row]:
    counts = [10, 100] if stage.quick else [10, 100, 1000]
    with ExitStack() as stack:
        # one store per number of trees, by prefix
        stores = [stack.enter_context(connect(stage.url, f"trees{count}")) for count in counts]
        for store, count in zip(stores, counts, strict=True):
            plant(store, count, "tree")
        sweeps = [sweeping(store, count) for store, count in zip(stores, counts, strict=True)]
        gcs = [collecting(stage, store) for store in stores]
        for case, laps in {"sweep": sweeps, "gc": gcs}.items():
            rounds = take_turns(laps, stage.budget_s, at_once=1)
            for number, count in enumerate(counts[1:], 1):
                pair = rounds.of(number, 0)
                yield slower(f"{case}, a tree of {count} against {counts[0]}", at_most(1.5), pair)


def plant(store: Store, count: int, kind: str) -> list[TreeKeys]:
    """Create `count` trees of one process each."""
    trees = [TreeKeys(store.prefix, f"{kind}-{number}") for number in range(count)]
    for tree in trees:
        proc = store.process(tree.tree)
        for _ in range(DESCRIPTORS):
            proc.create("a descriptor")
    return trees


def sweeping(store: Store, count: int) -> Lap:
    """Time a pass in which nothing is due, per tree."""

    def run(times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            now = store.run(redis_now())
            trees = store.run(tree_facts.tree_names(store.prefix))
            store.run(leases.find_due(store.prefix, trees, now))
            store.run(due_streams.find_due(store.prefix, trees, now))
            store.run(process_records.finished_trees(store.prefix, trees))
        return (time.perf_counter() - start) / count

    return run


def collecting(stage: Stage, store: Store) -> Lap:
    """Time collecting trees, per tree; creating and aging them before is not timed."""

    def run(times: int) -> float:
        passed = 0.0
        for _ in range(times):
            for tree in plant(store, DUE, "due"):
                stage.plain.hset(tree.record, "used_at", 0)
                stage.plain.zadd(tree.trees, {tree.tree: 0})
            start = time.perf_counter()
            for keys in store.run(collect_trees.due_trees(store.prefix)):
                assert store.run(collect_trees.collect_tree(keys)).outcome == "gone"
            passed += time.perf_counter() - start
        return passed / DUE

    return run
