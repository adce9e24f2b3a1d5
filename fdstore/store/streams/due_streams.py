"""Find the open streams whose writers must be checked, and check them: what a sweeper does."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from fdstore.errors import DamagedRecord
from fdstore.records import Unreadable
from fdstore.store.contents.resolving import lost_writer
from fdstore.store.keys import TreeKeys, content_keys, is_content
from fdstore.store.record_format import UNREADABLE, replies_or_damage, show_bytes, unreadable
from fdstore.wire.operation import Batch, Operation
from fdstore.wire.scripts import text

PROCESS_WRITES_S = 30.0
"""The time until the next check of a stream without a lease, as in `common.lua`."""


class DueStreams(msgspec.Struct, frozen=True):
    """The streams whose writers must be checked, and the unreadable records with their trees."""

    streams: list[tuple[TreeKeys, str]]
    unreadable: list[tuple[str, Unreadable]]


def find_due(prefix: str, trees: list[str], now_s: float) -> Operation[DueStreams]:
    """Return the streams of these trees whose writers must be checked: their time has come, or it is further
    away than it can be, because the Redis clock was set back. Two round trips at most, if no tree is
    damaged."""
    keys = [TreeKeys(prefix, tree) for tree in trees]
    due: Batch = [("ZRANGEBYSCORE", each.writers, "-inf", f"{now_s:.3f}") for each in keys]
    later: Batch = [
        ("ZRANGEBYSCORE", each.writers, f"({now_s + 2 * PROCESS_WRITES_S:.3f}", "+inf", "WITHSCORES")
        for each in keys
    ]
    replies = yield from replies_or_damage(due + later)
    found = DueStreams([], [])
    for each, reply in zip(keys, replies, strict=False):
        if isinstance(reply, DamagedRecord):
            found.unreadable.append((each.tree, unreadable(reply)))
            continue
        for content in reply:
            if is_content(each, content):
                found.streams.append((each, text(content)))
            else:
                problem = f"{show_bytes(content)} is not a content of this tree"
                found.unreadable.append((each.tree, Unreadable(what=each.writers, problem=problem)))
    scored = [
        (tree, text(content), float(score) - now_s)
        for tree, reply in zip(keys, replies[len(keys) :], strict=True)
        if not isinstance(reply, DamagedRecord)
        for content, score in zip(reply[::2], reply[1::2], strict=True)
        if is_content(tree, content)
    ]
    found.streams.extend((yield from _due_too_late(scored)))
    return found


def _due_too_late(scored: list[tuple[TreeKeys, str, float]]) -> Operation[list[tuple[TreeKeys, str]]]:
    """Return those of these streams, with the seconds until their next check, for which that is longer than
    two leases."""
    records = [content_keys(tree, content).record for tree, content, _ in scored]
    replies = yield from replies_or_damage([("HGET", record, "lease") for record in records])
    found = []
    for (tree, content, left_s), lease in zip(scored, replies, strict=True):
        lease_s = PROCESS_WRITES_S
        with suppress(*UNREADABLE):
            lease_s = max(lease_s, float(lease if isinstance(lease, bytes) else 0))
        if left_s > 2 * lease_s:
            found.append((tree, content))
    return found


def check_writer(tree: TreeKeys, content: str) -> Operation[None]:
    """Break a stream if its writer's lease has expired; otherwise schedule the next check."""
    yield [lost_writer(tree, content)]
