"""Wait for processes to end: as an agent that gives its worker back, or as a client."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from fdstore.model.lifecycle import ENDED
from fdstore.store.clock import seconds_of
from fdstore.store.keys import process_keys
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import tool_calls
from fdstore.wire.operation import Batch, Block, Operation
from fdstore.wire.scripts import script, text

_ENDED = frozenset(state.encode() for state in ENDED)


def park(
    handle: ProcessHandle,
    children: Sequence[str],
    seconds: float | None = None,
    questions: Sequence[int] = (),
) -> Operation[bool]:
    """Park the process until these children end, a person answers one of these questions (see `people`), or
    `seconds` pass, which frees its worker. Return False if that has happened already: all children have
    ended, and there are no questions, or one has an answer. Raises `Fenced`, `NotFound`."""
    keys = handle.keys
    command = script("wait")(
        tree=keys.tree.record,
        process=keys.record,
        process_id=handle.id,
        attempt=handle.attempt,
        most_s="" if seconds is None else max(seconds, 0.0),
        questions=" ".join(map(str, questions)),
        children=children,
    )
    [reply] = yield [command]
    return text(outcome(reply, handle.id)[0]) == "waiting"


class Looked(NamedTuple):
    """Processes at the Redis time `now_s`: their hashes, and which of them have ended or are gone."""

    now_s: float
    records: dict[str, list[bytes]]
    ended: frozenset[str]


def look_at(handle: ProcessHandle, processes: list[str], results: Batch) -> Operation[Looked]:
    """Read these processes of the tree. In the same round trip, before that, store these `results` of calls
    (see `tool_calls`)."""
    keys = [process_keys(handle.keys.tree.prefix, each) for each in processes]

    def look(first: Batch) -> Operation[list[Any]]:
        replies: list[Any] = yield [*first, ("TIME",), *[("HGETALL", each.record) for each in keys]]
        return replies

    now, *replies = yield from tool_calls.run_beside(handle, results, look)
    records = dict(zip(processes, replies, strict=True))
    return Looked(
        seconds_of(now), records, frozenset(each for each, flat in records.items() if _has_ended(flat))
    )


def _has_ended(flat: list[bytes]) -> bool:
    state = dict(zip(flat[::2], flat[1::2], strict=True)).get(b"state")
    return not state or state in _ENDED


def wait_until_ended(prefix: str, processes: list[str], seconds: float) -> Operation[bool]:
    """Wait until all these processes have ended or `seconds` pass. Return whether all have ended."""
    until = time.monotonic() + seconds
    keys = [process_keys(prefix, process) for process in processes]
    while True:
        states = yield [("HGET", each.record, "state") for each in keys]
        live = [each for each, state in zip(keys, states, strict=True) if state and state not in _ENDED]
        left = until - time.monotonic()
        if not live or left <= 0:
            return not live
        # a process adds an event when it ends; "0" also returns one added before this request
        pause = min(left, 10.0)
        yield Block(("XREAD", "BLOCK", max(1, int(pause * 1000)), "STREAMS", live[0].events, "0"), pause)
