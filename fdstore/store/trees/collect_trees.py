"""Collect trees that were not used within their retention.

The `trees` key has the earliest collection time of each tree; the tree's own time of last use decides. SCAN
is never used. A tree with a process that is ready, running or waiting is kept.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

import msgspec

from fdstore.errors import SKIPPABLE, StoreFull
from fdstore.store.clock import redis_now
from fdstore.store.keys import TreeKeys, is_root
from fdstore.store.outcomes import outcome
from fdstore.store.record_format import FORMAT, show_bytes
from fdstore.wire.operation import Command, Operation
from fdstore.wire.scripts import script, text

PIECE = 500
"""Contents removed in one step, so that Redis is not blocked for long."""

HELD_RETRY_S = 3600
"""After this time, a tree that is past its retention but in use, or damaged, is checked again."""


class Collected(msgspec.Struct, frozen=True):
    """The result for one tree: `kept` until its time, `held` by a process, `due` (a dry run would collect
    it), or `gone`. `detail` is the time, the process, or the size."""

    tree: str
    outcome: Literal["kept", "held", "due", "gone"]
    detail: str = ""


def collect_tree(tree: TreeKeys, *, dry_run: bool = False) -> Operation[Collected]:
    """Remove a tree that is past its retention. Raises `DamagedRecord`, `NewerFormat`: a tree that cannot be
    read is never removed."""
    try:
        return (yield from _collect(tree, dry_run=dry_run))
    except SKIPPABLE:
        if not dry_run:  # otherwise it would be the first in line each time
            yield from look_again_at(tree, f"{(yield from redis_now()) + HELD_RETRY_S:.0f}")
        raise


def _collect(tree: TreeKeys, *, dry_run: bool) -> Operation[Collected]:
    while True:
        look = script("collect")(
            tree=tree.record, is_dry="1" if dry_run else "0", most=PIECE, known_format=FORMAT
        )
        [reply] = yield [look]
        what, *facts = map(show_bytes, (each or b"" for each in outcome(reply, tree.tree)))
        match what:
            case "more":
                continue
            case "kept":
                score = "+inf" if facts[0] == "inf" else facts[0]
                if not dry_run:
                    yield from look_again_at(tree, score)
                return Collected(tree.tree, "kept", facts[0])
            case "held":
                if not dry_run:
                    yield from look_again_at(tree, f"{float(facts[1]) + HELD_RETRY_S:.0f}")
                return Collected(tree.tree, "held", facts[0])
            case "due":
                return Collected(tree.tree, "due", f"{facts[0]} contents, {facts[1]} bytes")
            case _:
                if not dry_run:
                    yield from drop_entry(tree)
                return Collected(tree.tree, "gone")


def look_again_at(tree: TreeKeys, score: str) -> Operation[None]:
    """Set the earliest collection time of a tree, in seconds since the epoch or "+inf"."""
    # if Redis is full, the entry stays due, and other trees are still collected
    with suppress(StoreFull):
        yield [("ZADD", tree.trees, "XX", score, tree.tree)]


def drop_entry(tree: TreeKeys) -> Operation[bool]:
    """Remove a deleted tree from `trees`. Return whether it was listed."""
    was_listed, exists = yield [("ZREM", tree.trees, tree.tree), ("EXISTS", tree.record)]
    if exists:
        # recreated in between (`trees` is in another slot): without an entry it would never be collected
        yield [("ZADD", tree.trees, "NX", 0, tree.tree)]
    return bool(was_listed)


def due_trees(prefix: str, now_s: float | None = None) -> Operation[list[TreeKeys]]:
    """Return the trees that may be due at `now_s` (default: now). Two round trips."""
    if now_s is None:
        now_s = yield from redis_now()
    [names] = yield [due_names(prefix, now_s)]
    return trees_of(prefix, names)


def due_names(prefix: str, now_s: float, count: int = -1) -> Command:
    """Return the command for the names of the trees that may be due at `now_s`, or the first `count`."""
    return ("ZRANGEBYSCORE", TreeKeys(prefix, "").trees, "-inf", f"{now_s:.3f}", "LIMIT", 0, count)


def trees_of(prefix: str, names: list[bytes]) -> list[TreeKeys]:
    """Return the trees with these names, without names that no tree can have."""
    return [TreeKeys(prefix, text(name)) for name in names if is_root(name)]
