"""The processes that people see: those of the store, but the lanes that answer the asks of a call are one.

To the store a lane is a process like any (`processes.asks`). Whatever shows processes gets them from here: of
the lanes of a call it sees the one that is furthest from its end, whose `program` and `asks` say how many
asks are done, with the tokens of all.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fdstore.model.lifecycle import ProcessState
from fdstore.model.records import TOKEN_COUNTS, AskCounts, ProcessRecord, TokenUsage, TreeRecord
from fdstore.store.keys import is_process
from fdstore.store.processes.asks import read_counts
from fdstore.store.processes.process_records import tree_record
from fdstore.wire.operation import Operation

FOLDED: tuple[ProcessState, ...] = ("running", "ready", "waiting", "open", "failed", "cancelled", "exited")


def shown_tree(prefix: str, tree: str, start: int = 0, count: int | None = None) -> Operation[TreeRecord]:
    """Return `tree_record` with its processes as people see them. One more round trip if it has lanes."""
    found = yield from tree_record(prefix, tree, start, count)
    members = yield from fold_lanes(prefix, found.members)
    return msgspec.structs.replace(found, members=tuple(members))


def fold_lanes(prefix: str, processes: Sequence[ProcessRecord]) -> Operation[list[ProcessRecord]]:
    """Return these processes, with one in place of the lanes of each call, where the first one stands. One
    round trip, and none without lanes."""
    lanes: dict[tuple[str, str], list[ProcessRecord]] = {}
    for each in processes:
        if each.kind == "asks":
            lanes.setdefault((each.parent or "", each.call or ""), []).append(each)
    if not lanes:
        return [*processes]
    known = {key for key in lanes if is_process(key[0])}
    counts = dict(zip(known, (yield from read_counts(prefix, [*known])), strict=True))
    found = []
    for each in processes:
        if each.kind != "asks":
            found.append(each)
        elif group := lanes.pop((each.parent or "", each.call or ""), None):
            found.append(_fold(group, counts.get((each.parent or "", each.call or ""))))
    return found


def _fold(lanes: list[ProcessRecord], counts: AskCounts | None) -> ProcessRecord:
    """Return one record for all lanes of a call: of the one that is furthest from its end, with the tokens of
    all."""
    shown = min(lanes, key=lambda each: FOLDED.index(each.state))
    ended = [each.ended_at for each in lanes]
    used = sum(lanes, start=TokenUsage())
    return msgspec.structs.replace(
        shown,
        id=lanes[0].id,
        program="asks" if counts is None else str(counts),
        asks=counts,
        losses=sum(each.losses for each in lanes),
        started_at=lanes[0].started_at,
        ended_at=None if None in ended else max(at for at in ended if at is not None),
        **{name: getattr(used, name) for name in TOKEN_COUNTS},
    )
