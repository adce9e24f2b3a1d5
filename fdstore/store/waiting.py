"""Wait for processes to end: as an agent that gives its worker back, or as a client."""

from __future__ import annotations

import time

from fdstore.lifecycle import ENDED
from fdstore.store.keys import process_keys
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.record_format import (
    show_bytes,
)
from fdstore.wire.operation import Block, Operation
from fdstore.wire.scripts import script, text


def park(handle: ProcessHandle, children: list[str], seconds: float | None = None) -> Operation[bool]:
    """Park the process until these children end or `seconds` pass, which frees its worker. Return False if
    all have ended already. Raises `Fenced`, `NotFound`."""
    keys = handle.keys
    until = "" if seconds is None else max(seconds, 0.0)
    arguments = (handle.id, handle.attempt, until, *children)
    [reply] = yield [script("wait")((keys.tree.record, keys.record), *arguments)]
    return text(outcome(reply, handle.id)[0]) == "waiting"


def wait_until_ended(prefix: str, processes: list[str], seconds: float) -> Operation[bool]:
    """Wait until all these processes have ended or `seconds` pass. Return whether all have ended."""
    until = time.monotonic() + seconds
    keys = [process_keys(prefix, process) for process in processes]
    while True:
        states = yield [("HGET", each.record, "state") for each in keys]
        live = [
            each for each, state in zip(keys, states, strict=True) if state and show_bytes(state) not in ENDED
        ]
        left = until - time.monotonic()
        if not live or left <= 0:
            return not live
        # a process adds an event when it ends; "0" also returns one added before this request
        pause = min(left, 10.0)
        yield Block(("XREAD", "BLOCK", max(1, int(pause * 1000)), "STREAMS", live[0].events, "0"), pause)
