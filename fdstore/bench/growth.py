"""Scaling: the cost of a call beside ten thousand descriptors, in a gigabyte, or among a thousand trees.

Each row compares the same call on a large and a smaller object, in alternation. Most calls must cost the
same. Calls that touch every descriptor may grow in proportion to their number, plus one half: a larger table
lies in slower memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import pairwise

from fdstore.bench import texts
from fdstore.bench.measuring import BenchRow, Lap, at_most, lap, lap_on, self_timed, slower, take_turns
from fdstore.bench.sharing import closing, spawn_lap
from fdstore.bench.stage import GB, MB, BenchStage, format_size
from fdstore.client import Process, Store, connect
from fdstore.errors import NotFound
from fdstore.model.records import Descriptor
from fdstore.store import tree_facts
from fdstore.store.clock import redis_now
from fdstore.store.contents import descriptors
from fdstore.store.keys import TreeKeys
from fdstore.store.processes import leases, process_records
from fdstore.store.streams import due_streams
from fdstore.store.trees import collect_trees

SHOWN = 50
"""Descriptors on a page of the list."""

PAGE = 100

DESCRIPTORS = 3
"""Descriptors of each tree's process."""

DUE = 10
"""Trees that are collected per repetition, besides those that stay."""


def rows(stage: BenchStage) -> Iterator[BenchRow]:
    yield from tables(stage)
    yield from sizes(stage)
    yield from upkeep(stage)


def tables(stage: BenchStage) -> Iterator[BenchRow]:
    """Compare processes with few and with many descriptors."""
    counts = [10, 1000] if stage.quick else [10, 1000, 10_000]
    same: dict[str, Callable[[Process], Lap]] = {
        "create": creating(lambda proc: proc.create("a descriptor")),
        "close": lambda proc: closing(proc, "a descriptor"),
        "stat": lambda proc: lap(lambda: stat_cold(proc)),
        "child that shares one": lambda proc: spawn_lap(lambda: proc.child(share=["fd:1"])),
        "end of such a child": ending(lambda proc: proc.child(share=["fd:1"])),
    }
    growing: dict[str, Callable[[Process], Lap]] = {
        # the error lists the existing ids, up to a thousand
        "read of what is not there": lambda proc: lap(lambda: read_missing(proc)),
        f"list, {SHOWN} of all": lambda proc: lap(
            lambda: proc.store.run(descriptors.list_page(proc.handle, 1, SHOWN))
        ),
        "fork": lambda proc: spawn_lap(proc.fork),
        "end of a fork": ending(Process.fork),
    }
    with ExitStack() as stack:
        held = [stack.enter_context(stage.process()) for _ in counts]
        for proc, count in zip(held, counts, strict=True):
            for _ in range(count):
                proc.create("a descriptor")
        for case, make in (same | growing).items():
            rounds = take_turns([make(proc) for proc in held], stage.budget_s, at_once=20)
            for small, large in pairwise(range(len(counts))):
                more = counts[large] / counts[small]
                bar = at_most(1.5 * more) if case in growing else at_most(1.5)
                pair = rounds.of(large, small)
                yield slower(f"{case}, {counts[large]} against {counts[small]}", bar, pair)


def sizes(stage: BenchStage) -> Iterator[BenchRow]:
    """Compare a content of 1 MB with larger ones."""
    larger = [10 * MB] if stage.quick else [10 * MB, 100 * MB, GB]
    same: dict[str, Callable[[Process], Lap]] = {
        "page, cold": lambda proc: lap(lambda: read_page_cold(proc)),
        "stat, cold": lambda proc: lap(lambda: stat_cold(proc)),
        "20 lines": lambda proc: lap(lambda: proc.read("fd:1", mode="line", start=5000, count=20)),
        "search in one page": lambda proc: lap(lambda: proc.search(f"fd:1#P{PAGE}", "ERROR", max_matches=1)),
        "child that shares it": lambda proc: lap(lambda: proc.child(share=["fd:1"]).end()),
        "extract one page": creating(lambda proc: proc.extract(f"fd:1#P{PAGE}")),
    }
    with ExitStack() as stack:
        held = [stack.enter_context(stage.process()) for _ in (MB, *larger)]
        for proc, size in zip(held, (MB, *larger), strict=True):
            proc.ingest(texts.log_file(size))
        for case, make in same.items():
            rounds = take_turns([make(proc) for proc in held], stage.budget_s, at_once=20)
            for number, size in enumerate(larger, 1):
                pair = rounds.of(number, 0)
                yield slower(f"{case}, {format_size(size)} against {format_size(MB)}", at_most(1.5), pair)
    for size in larger:
        case = f"close, {format_size(size)} against {format_size(MB)}"
        yield stage.compare(case, at_most(3), closed(stage, size), closed(stage, MB), at_once=1)


def creating(make: Callable[[Process], Descriptor]) -> Callable[[Process], Lap]:
    """Time creating descriptors; closing them afterwards is not timed."""
    return lambda proc: lap(lambda: make(proc).fd, proc.close)


def ending(make: Callable[[Process], Process]) -> Callable[[Process], Lap]:
    """Time ending processes; creating them before is not timed."""
    return lambda proc: lap_on(lambda: make(proc), Process.end)


def stat_cold(proc: Process) -> object:
    proc.handle.forget("fd:1")
    return proc.stat("fd:1")


def read_page_cold(proc: Process) -> object:
    proc.handle.forget("fd:1")
    return proc.read("fd:1", start=PAGE)


def read_missing(proc: Process) -> None:
    with suppress(NotFound):
        proc.read("fd:999999")


def closed(stage: BenchStage, size: int) -> Lap:
    """Time the last close of a content; creating it before is not timed.

    Redis takes the same time for any size, and then frees the pages in a background thread. If that thread
    shares a CPU with the client or the server, replies are delayed while it runs. So the server has a CPU of
    its own in this area, as in most.
    """

    def close() -> float:
        with stage.process() as proc:
            proc.ingest(texts.log_file(size))
            stage.settle()
            return lap(lambda: proc.close("fd:1"))(1)

    return self_timed(close)


def upkeep(stage: BenchStage) -> Iterator[BenchRow]:
    """Compare the cost of the sweep and of gc per tree, with few and with many trees.

    A pass of the sweep queries all trees in one batch, and gc collects those that are due; the cost per tree
    must not grow with their number. The sweep itself is part of the workers: measured here are its queries
    when nothing is due, the usual case.
    """
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

    def look() -> None:
        now = store.run(redis_now())
        trees = store.run(tree_facts.tree_names(store.prefix))
        store.run(leases.find_due(store.prefix, trees, now))
        store.run(due_streams.find_due(store.prefix, trees, now))
        store.run(process_records.finished_trees(store.prefix, trees))

    return lambda times: lap(look)(times) / count


def collecting(stage: BenchStage, store: Store) -> Lap:
    """Time collecting trees, per tree; creating and aging them before is not timed."""

    def collect() -> float:
        for tree in plant(store, DUE, "due"):
            stage.plain.hset(tree.record, "used_at", 0)
            stage.plain.zadd(tree.trees, {tree.tree: 0})
        start = time.perf_counter()
        for keys in store.run(collect_trees.due_trees(store.prefix)):
            assert store.run(collect_trees.collect_tree(keys)).outcome == "gone"
        return (time.perf_counter() - start) / DUE

    return self_timed(collect)
