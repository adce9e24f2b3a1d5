"""Copies of a process, several at once: all of them or none.

Each is a child that holds the whole table. They are made by one script each, so that a repeated call
finds those that are there; limits are looked at before the first, and should somebody else take the
room meanwhile, what was made is cancelled again.
"""

from __future__ import annotations

from fdstore.errors import SpawnLimit
from fdstore.lifecycle import SPAWN_LIMIT
from fdstore.store import processes
from fdstore.store.content_info import ProcessHandle
from fdstore.store.processes import Program
from fdstore.wire.operation import Batch, Operation


def make_copies(
    handle: ProcessHandle, briefs: list[str], program: Program, call_id: str
) -> Operation[list[ProcessHandle]]:
    """One copy of this process for each brief (JSON), ready to be run, keyed by the tool call.

    Raises `SpawnLimit`, `Fenced`, `NotFound`.
    """
    slots = [f"{call_id}/copy{number}" for number in range(1, len(briefs) + 1)]
    yield from _check_room(handle, slots)
    made: list[ProcessHandle] = []
    try:
        for slot, brief in zip(slots, briefs, strict=True):
            child = processes.child(handle, None, state="ready", program=program, brief=brief, call_id=slot)
            made.append((yield from child))
    except SpawnLimit:
        for copy in made:
            yield from processes.end(copy, "cancelled", exit_code=None, reason=SPAWN_LIMIT)
        raise
    return made


def _check_room(handle: ProcessHandle, slots: list[str]) -> Operation[None]:
    limits, depth = handle.limits, handle.id.count(".") + 2
    batch: Batch = [
        ("HMGET", handle.keys.tree.record, "processes", "live"),
        ("HMGET", handle.keys.calls, *slots),
    ]
    (total, live), there = yield batch
    more = there.count(None)
    for name, needed, allowed in (
        ("tree_depth", depth, limits.tree_depth),
        ("tree_processes", int(total or 0) + more, limits.tree_processes),
        ("tree_live", int(live or 0) + more, limits.tree_live),
    ):
        if more and needed > allowed:
            raise SpawnLimit(name, allowed)
