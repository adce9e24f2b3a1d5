"""The processes that people see: those of the store, but the lanes that answer the asks of a call are one.

To the store a lane is a process like any (`processes.asks`). Whatever shows processes gets them from here: of
the lanes of a call it sees the one that is furthest from its end, whose `program` and `asks` say how many
asks are done, with the tokens of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from fdstore.model.lifecycle import ENDED, ProcessState
from fdstore.model.records import TOKEN_COUNTS, AskCounts, ProcessRecord, Record, TokenUsage, TreeRecord
from fdstore.store.keys import is_process
from fdstore.store.processes.asks import read_counts
from fdstore.store.processes.process_records import tree_record
from fdstore.wire.operation import Operation

FOLDED: tuple[ProcessState, ...] = ("running", "ready", "waiting", "open", "failed", "cancelled", "exited")


class CountedProcess(Protocol):
    """What is counted: a process as it is stored, or as people see it."""

    @property
    def state(self) -> str: ...
    @property
    def kind(self) -> str | None: ...
    @property
    def parent(self) -> str | None: ...
    @property
    def call(self) -> str | None: ...


class ProcessCounts(Record, frozen=True, kw_only=True):
    """How many processes people see: in `total`, and in each state. Of these, `asks` answer asks, one for
    each call; the store counts them in no limit of a tree."""

    total: int
    asks: int
    states: dict[str, int]

    @property
    def live(self) -> int:
        """The number of those that have not ended."""
        return self.total - sum(self.states.get(state, 0) for state in (*ENDED, "unreadable"))


def count_processes(processes: Iterable[CountedProcess]) -> ProcessCounts:
    """Count these processes, the lanes of a call as one: whatever shows a number of processes has it from
    here.

    >>> stored = [ProcessRecord(id="t", state="exited")]
    >>> stored += [ProcessRecord(id=f"t.{n}", state="exited", kind="asks", call="a") for n in (1, 2)]
    >>> count_processes(stored)
    ProcessCounts(total=2, asks=1, states={'exited': 2})
    """
    states = Counter[str]()
    lanes: dict[tuple[str | None, str | None], list[str]] = {}
    for each in processes:
        if each.kind == "asks":
            lanes.setdefault((each.parent, each.call), []).append(each.state)
        else:
            states[each.state] += 1
    states.update(min(group, key=_rank) for group in lanes.values())
    return ProcessCounts(total=states.total(), asks=len(lanes), states=dict(states))


def _rank(state: str) -> int:
    """Return the place of a state among those of lanes of which one is shown; the last, if it is
    unreadable."""
    return FOLDED.index(state) if state in FOLDED else len(FOLDED)


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
    shown = min(lanes, key=lambda each: _rank(each.state))
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
