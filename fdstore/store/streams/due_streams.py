"""Find the open streams whose writers must be checked, and check them: what a sweeper does."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from fdstore.model.records import Unreadable
from fdstore.store.contents.resolving import lost_writer
from fdstore.store.keys import TreeKeys, content_keys, is_content
from fdstore.store.processes.leases import read_schedule
from fdstore.store.record_format import decode_moment, replies_or_damage
from fdstore.wire.operation import Operation
from fdstore.wire.script_constants import PROCESS_WRITES_S
from fdstore.wire.scripts import text


class DueStreams(msgspec.Struct, frozen=True):
    """The streams whose writers must be checked, and the unreadable records with their trees."""

    streams: list[tuple[TreeKeys, str]]
    unreadable: list[tuple[str, Unreadable]]


def find_due(prefix: str, trees: list[str], now_s: float) -> Operation[DueStreams]:
    """Return the streams of these trees whose writers must be checked: their time has come, or it is further
    away than it can be, because the Redis clock was set back. Two round trips at most, if no tree is
    damaged."""
    keys = {tree.writers: tree for tree in (TreeKeys(prefix, name) for name in trees)}
    due, later, damaged = yield from read_schedule(keys, now_s, PROCESS_WRITES_S, _stream_of, "content")
    return DueStreams(due + (yield from _due_too_late(later)), damaged)


def _stream_of(tree: TreeKeys, content: bytes) -> tuple[TreeKeys, str] | None:
    return (tree, text(content)) if is_content(tree, content) else None


def _due_too_late(scored: list[tuple[tuple[TreeKeys, str], float]]) -> Operation[list[tuple[TreeKeys, str]]]:
    """Return those of these streams, with the seconds until their next check, for which that is longer than
    two leases."""
    records = [content_keys(*stream).record for stream, _ in scored]
    replies = yield from replies_or_damage([("HGET", record, "lease") for record in records])
    found = []
    for (stream, left_s), lease in zip(scored, replies, strict=True):
        lease_s: float = PROCESS_WRITES_S
        with suppress(ValueError):
            lease_s = max(lease_s, decode_moment(lease if isinstance(lease, bytes) else 0))
        if left_s > 2 * lease_s:
            found.append(stream)
    return found


def check_writer(tree: TreeKeys, content: str) -> Operation[None]:
    """Break a stream if its writer's lease has expired; otherwise schedule the next check."""
    yield [lost_writer(tree, content)]
