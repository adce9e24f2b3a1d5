"""Collecting trees that nobody used for their retention.

`trees` says when a tree may be collected at the earliest; the tree itself says when it was used
last, and decides. Nothing is ever looked for by SCAN. A tree with a process that is ready, running or
waiting is left alone.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

import msgspec

from fdstore.errors import StoreFull
from fdstore.store.clock import redis_now
from fdstore.store.decoding import FORMAT, PASSED_OVER, show_bytes
from fdstore.store.keys import TreeKeys, is_root
from fdstore.store.outcomes import outcome
from fdstore.wire.operation import Operation
from fdstore.wire.scripts import script, text

PIECE = 500
"""Contents removed in one step, so that Redis is not held up."""

HELD_RETRY_S = 3600
"""When a tree that is past its retention but in use, or damaged, is looked at again."""


class Collected(msgspec.Struct, frozen=True):
    """What became of one tree: `kept` until its time, `held` by a process, `due` (it would be
    collected), or `gone`. `detail` says until when, by which process, or how much."""

    tree: str
    outcome: Literal["kept", "held", "due", "gone"]
    detail: str = ""


def collect_tree(tree: TreeKeys, *, dry_run: bool = False) -> Operation[Collected]:
    """Removes a tree if its time has come. Raises `DamagedRecord`, `NewerFormat`: what cannot be read is
    never removed."""
    try:
        return (yield from _collect(tree, dry_run=dry_run))
    except PASSED_OVER:
        if not dry_run:  # or it would be the first to be looked at each time
            yield from look_again_at(tree, f"{(yield from redis_now()) + HELD_RETRY_S:.0f}")
        raise


def _collect(tree: TreeKeys, *, dry_run: bool) -> Operation[Collected]:
    while True:
        [reply] = yield [script("collect")((tree.record,), "1" if dry_run else "0", PIECE, FORMAT)]
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
    """Note when a tree may be collected at the earliest, in seconds since the epoch or "+inf"."""
    # when Redis is full the entry stays due, and the rest is collected all the same
    with suppress(StoreFull):
        yield [("ZADD", tree.trees, "XX", score, tree.tree)]


def drop_entry(tree: TreeKeys) -> Operation[bool]:
    """Take a tree that is gone out of `trees`; whether it was in there."""
    was_there, there = yield [("ZREM", tree.trees, tree.tree), ("EXISTS", tree.record)]
    if there:
        # made anew in between, in another slot: without an entry nobody would ever find it
        yield [("ZADD", tree.trees, "NX", 0, tree.tree)]
    return bool(was_there)


def due_trees(prefix: str, now_s: float | None = None, count: int = -1) -> Operation[list[TreeKeys]]:
    """The trees that may be due at `now_s` (now), or the first `count` of them. Two round trips."""
    if now_s is None:
        now_s = yield from redis_now()
    [names] = yield [("ZRANGEBYSCORE", TreeKeys(prefix, "").trees, "-inf", f"{now_s:.3f}", "LIMIT", 0, count)]
    return [TreeKeys(prefix, text(name)) for name in names if is_root(name)]
