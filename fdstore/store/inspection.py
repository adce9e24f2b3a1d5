"""How processes and trees stand: their records, their answers, and waiting for their ends.

Nothing here writes. It is what people, tools and who waits for a child are told; what changes a process
is in `processes` and `leases`.
"""

from __future__ import annotations

import time
from contextlib import suppress

import msgspec

from fdstore.errors import NotFound
from fdstore.records import ENDED, ProcessRecord, ProcessState, TreeLimits, TreeRecord
from fdstore.store.keys import ProcessKeys, TreeKeys, check_process, check_root, process_keys
from fdstore.store.operation import Batch, Block, Operation
from fdstore.store.scripts import text
from fdstore.store.views import pairs


def process_of(process: str, fields: dict[str, str]) -> ProcessRecord:
    """The record that a process's hash says."""

    def number(name: str) -> int | None:
        return int(fields[name]) if name in fields else None

    def moment(name: str) -> float | None:
        return float(fields[name]) if name in fields else None

    return ProcessRecord(
        id=process,
        state=msgspec.convert(fields["state"], ProcessState),
        program=fields.get("program"),
        parent=fields.get("parent"),
        attempt=int(fields.get("attempt", 0)),
        losses=int(fields.get("losses", 0)),
        worker=fields.get("worker"),
        lease_until=moment("lease_until"),
        waiting_for=tuple(fields.get("waiting_for", "").split()),
        kind="pipeline" if fields.get("kind") == "pipeline" else None,
        outputs=tuple(fields.get("outputs", "").split()),
        exit_code=number("exit_code"),
        reason=fields.get("reason"),
        next_fd=int(fields.get("next_fd", 1)),
        next_child=int(fields.get("next_child", 1)),
        started_at=moment("started_at"),
        ended_at=moment("ended_at"),
    )


def record(prefix: str, process: str) -> Operation[ProcessRecord]:
    """One process as it is now. Raises `NotFound`."""
    keys = process_keys(prefix, check_process(process))
    [flat] = yield [("HGETALL", keys.record)]
    if not flat:
        raise (yield from missing(keys))
    return process_of(process, pairs(flat))


def missing(keys: ProcessKeys) -> Operation[NotFound]:
    """The error for a process that is not there: it names those of its tree, or else the trees."""
    tree = keys.tree
    members, trees = yield [("ZRANGE", tree.processes, 0, 50), ("ZRANGE", tree.trees, 0, 50)]
    return NotFound(f"process {keys.process}", tuple(map(text, members or trees)))


class Answer(msgspec.Struct, frozen=True):
    """How a process ended: its record, and its answer in short or as a descriptor of its parent
    (of its own, for a root)."""

    record: ProcessRecord
    text: str
    fd: str | None


def answer_of(prefix: str, process: str) -> Operation[Answer]:
    """The end of a process, or the record of one that has not ended."""
    keys = process_keys(prefix, process)
    [flat] = yield [("HGETALL", keys.record)]
    if not flat:
        raise (yield from missing(keys))
    fields = pairs(flat)
    return Answer(process_of(process, fields), fields.get("answer", ""), fields.get("answer_fd"))


def wait_ended(prefix: str, processes: list[str], seconds: float) -> Operation[bool]:
    """Waits until all these processes have ended, for at most so long; whether they have."""
    until = time.monotonic() + seconds
    keys = [process_keys(prefix, process) for process in processes]
    while True:
        states = yield [("HGET", each.record, "state") for each in keys]
        live = [each for each, state in zip(keys, states, strict=True) if state and text(state) not in ENDED]
        left = until - time.monotonic()
        if not live or left <= 0:
            return not live
        # the end of a process adds to its events; "0" also sees one that came before this request
        pause = min(left, 10.0)
        yield Block(("XREAD", "BLOCK", max(1, int(pause * 1000)), "STREAMS", live[0].events, "0"), pause)


def tree_record(prefix: str, tree: str) -> Operation[TreeRecord]:
    """One tree with its processes. Raises `NotFound`."""
    keys = TreeKeys(prefix, check_root(tree))
    flat, members = yield [("HGETALL", keys.record), ("ZRANGE", keys.processes, 0, -1)]
    if not flat:
        [trees] = yield [("ZRANGE", keys.trees, 0, 50)]
        raise NotFound(f"tree {tree}", tuple(map(text, trees)))
    fields = pairs(flat)
    names = [text(member) for member in members]
    requests: Batch = [("HGETALL", process_keys(prefix, name).record) for name in names]
    replies = (yield requests) if requests else []
    return TreeRecord(
        id=tree,
        created_at=float(fields["created_at"]),
        used_at=float(fields["used_at"]),
        bytes=int(fields["bytes"]),
        fds=int(fields["fds"]),
        processes=int(fields["processes"]),
        live=int(fields["live"]),
        limits=msgspec.json.decode(fields["limits"], type=TreeLimits),
        export_bytes=int(fields.get("export_bytes", 0)),
        usage_day=int(fields.get("usage_day", 0)),
        model_calls=int(fields.get("model_calls", 0)),
        tokens=int(fields.get("tokens", 0)),
        members=tuple(
            process_of(name, pairs(reply)) for name, reply in zip(names, replies, strict=True) if reply
        ),
    )


def trees(prefix: str) -> Operation[list[TreeRecord]]:
    """All trees, by name."""
    found = []
    for name in (yield from tree_names(prefix)):
        # one that is named may be gone, or not there yet
        with suppress(NotFound):
            found.append((yield from tree_record(prefix, name)))
    return found


def tree_names(prefix: str) -> Operation[list[str]]:
    """The names of all trees."""
    [names] = yield [("ZRANGE", TreeKeys(prefix, "").trees, 0, -1)]
    return sorted(map(text, names))


def over(prefix: str, trees: list[str]) -> Operation[list[str]]:
    """Those of these trees whose processes have all ended: nothing happens in them any more. One round
    trip."""
    if not trees:
        return []
    live = yield [("HGET", TreeKeys(prefix, tree).record, "live") for tree in trees]
    return [tree for tree, count in zip(trees, live, strict=True) if count == b"0"]
