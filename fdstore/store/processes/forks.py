"""Fork several copies of a process in one call: all of them or none.

Each copy is a child that holds the whole table. One script creates each, so that a repeated call finds
the existing ones. Limits are checked before the first; if another client uses up the room in between, the
copies created so far are cancelled.
"""

from __future__ import annotations

from fdstore.errors import SpawnLimit
from fdstore.model.ends import SPAWN_LIMIT
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import processes
from fdstore.store.processes.processes import StoredProgram
from fdstore.store.record_format import decoding
from fdstore.store.tree_facts import TREE
from fdstore.wire.operation import Batch, Operation


def create_copies(
    handle: ProcessHandle, briefs: list[tuple[str, str]], program: StoredProgram, call_id: str
) -> Operation[list[ProcessHandle]]:
    """Create one copy of this process for each brief (JSON, and its title), ready to run, keyed by the
    tool call.

    Raises `SpawnLimit`, `Fenced`, `NotFound`.
    """
    slots = [f"{call_id}/copy{number}" for number in range(1, len(briefs) + 1)]
    yield from _check_room(handle, slots)
    copies: list[ProcessHandle] = []
    try:
        for slot, (brief, title) in zip(slots, briefs, strict=True):
            child = processes.create_child(
                handle, None, state="ready", program=program, brief=brief, title=title, call_id=slot
            )
            copies.append((yield from child))
    except SpawnLimit:
        for copy in copies:
            yield from processes.end(copy, SPAWN_LIMIT.state, exit_code=None, reason=SPAWN_LIMIT.name)
        raise
    return copies


_ROOM = TREE.some("processes", "live")


def _check_room(handle: ProcessHandle, slots: list[str]) -> Operation[None]:
    limits, depth = handle.limits, handle.id.count(".") + 2
    batch: Batch = [
        _ROOM.read(handle.keys.tree.record),
        ("HMGET", handle.keys.calls, *slots),
    ]
    counts, existing = yield batch
    more = existing.count(None)
    if counts == [None, None]:  # the tree is gone, which the script says of the first copy
        return
    with decoding(f"the record of tree {handle.keys.tree.tree}"):
        tree = _ROOM.decode_values(counts)
    for name, needed, allowed in (
        ("tree_depth", depth, limits.tree_depth),
        ("tree_processes", tree.processes + more, limits.tree_processes),
        ("tree_live", tree.live + more, limits.tree_live),
    ):
        if more and needed > allowed:
            raise SpawnLimit(name, allowed)
