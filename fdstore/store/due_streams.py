"""Find the open streams whose writers must be checked, and check them: what a sweeper does."""

from __future__ import annotations

import msgspec

from fdstore.errors import DamagedRecord
from fdstore.records import Unreadable
from fdstore.store.keys import TreeKeys, is_content
from fdstore.store.record_format import replies_or_damage, show_bytes, unreadable
from fdstore.store.resolving import lost_writer
from fdstore.wire.operation import Batch, Operation
from fdstore.wire.scripts import text


class DueStreams(msgspec.Struct, frozen=True):
    """The streams whose writers must be checked, and the unreadable records with their trees."""

    streams: list[tuple[TreeKeys, str]]
    unreadable: list[tuple[str, Unreadable]]


def find_due(prefix: str, trees: list[str], now_s: float) -> Operation[DueStreams]:
    """Return the streams of these trees whose writers must be checked. One round trip, if no tree is
    damaged."""
    keys = [TreeKeys(prefix, tree) for tree in trees]
    requests: Batch = [("ZRANGEBYSCORE", each.writers, "-inf", f"{now_s:.3f}") for each in keys]
    found = DueStreams([], [])
    for each, reply in zip(keys, (yield from replies_or_damage(requests)), strict=True):
        if isinstance(reply, DamagedRecord):
            found.unreadable.append((each.tree, unreadable(reply)))
            continue
        for content in reply:
            if is_content(each, content):
                found.streams.append((each, text(content)))
            else:
                problem = f"{show_bytes(content)} is not a content of this tree"
                found.unreadable.append((each.tree, Unreadable(what=each.writers, problem=problem)))
    return found


def check_writer(tree: TreeKeys, content: str) -> Operation[None]:
    """Break a stream if its writer's lease has expired; otherwise schedule the next check."""
    yield [lost_writer(tree, content)]
