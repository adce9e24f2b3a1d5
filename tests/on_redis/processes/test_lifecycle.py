"""Operations in all states of processes and streams make exactly the transitions of the table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import FDStoreError, Fenced
from fdstore.model.lifecycle import CONTENT_MOVES, ENDED, PROCESS_MOVES, ContentState, ProcessState
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import leases, processes, waiting
from fdstore.store.streams import streams
from fdstore.wire.operation import Operation

FAR_AWAY_S = 1e6
"""Past the end of every lease."""


class Subject:
    """A process in some state, its child, and the handle of the attempt that runs it, if any."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.process: Process = store.process(name)
        self.child = self.process.child()
        self.handle: ProcessHandle = self.process.handle

    def run(self, operation: Operation[Any]) -> Any:
        return self.store.run(operation)

    @property
    def state(self) -> ProcessState:
        return next(each.state for each in self.store.processes() if each.id == self.process.id)

    def now(self) -> float:
        from fdstore.store.clock import redis_now

        return float(self.run(redis_now()))

    def claim(self) -> None:
        claimed = self.run(leases.claim(self.handle.keys, "worker", "claim-1"))
        if isinstance(claimed, leases.Claim):
            self.handle = ProcessHandle(self.handle.keys, claimed.limits, claimed.attempt)

    def bring_to(self, state: ProcessState) -> None:
        """Make the moves that lead from `open` to `state`."""
        if state in ("ready", "running", "waiting"):
            self.run(processes.launch(self.handle, "{}"))
        if state in ("running", "waiting"):
            self.claim()
        if state == "waiting":
            self.run(waiting.park(self.handle, [self.child.id]))
        if state in ("exited", "failed"):
            self.run(processes.end(self.handle, state))
        if state == "cancelled":
            self.run(processes.cancel(self.store.prefix, self.process.id))
        assert self.state == state


Step = Callable[[Subject], object]

STEPS: dict[str, Step] = {
    "launch": lambda it: it.run(processes.launch(it.handle, "{}")),
    "claim": lambda it: it.claim(),
    "renew": lambda it: it.run(leases.renew(it.handle)),
    "park": lambda it: it.run(waiting.park(it.handle, [it.child.id])),
    "lapse": lambda it: it.run(leases.check_overdue(it.handle.keys, moment=it.now() + FAR_AWAY_S)),
    "look early": lambda it: it.run(leases.check_overdue(it.handle.keys)),
    "record a loss": lambda it: it.run(leases.record_loss(it.handle.keys, "claim-1")),
    "give back": lambda it: it.run(leases.return_to_queue(it.handle)),
    "exit": lambda it: it.run(processes.end(it.handle, "exited")),
    "fail": lambda it: it.run(processes.end(it.handle, "failed", exit_code=None, reason="poison")),
    "end by its client": lambda it: it.process.end(),
    "fail by its client": lambda it: it.run(processes.end(it.process.handle, "failed", exit_code=None)),
    "cancel": lambda it: it.run(processes.cancel(it.store.prefix, it.process.id)),
    "its child ends": lambda it: it.child.end(),
    "a write of its client": lambda it: it.process.create("text"),
}


def test_operations_make_exactly_the_documented_process_transitions(store: Store) -> None:
    seen: dict[str, set[str]] = {state: set() for state in PROCESS_MOVES}
    for state in PROCESS_MOVES:
        for number, (name, step) in enumerate(STEPS.items()):
            subject = Subject(store, f"{state}-{number}")
            subject.bring_to(state)
            with suppress(FDStoreError):
                step(subject)
            after = subject.state
            if after != state:
                assert after in PROCESS_MOVES[state], f"{name}: {state} -> {after}"
                seen[state].add(after)

    assert seen == {state: set(moves) for state, moves in PROCESS_MOVES.items()}


@pytest.mark.parametrize("state", sorted(ENDED))
def test_no_client_or_worker_operation_leaves_a_final_state(store: Store, state: ProcessState) -> None:
    subject = Subject(store, "final")
    subject.bring_to(state)

    for step in STEPS.values():
        with suppress(FDStoreError):
            step(subject)

    assert subject.state == state


STREAM_STEPS: dict[str, Callable[[Process, streams.StreamAppender], Operation[Any] | None]] = {
    "append": lambda _, out: out.store_once("text", "call-1"),
    "seal": lambda _, out: out.seal(0),
    "break": lambda _, out: out.break_off("disk full"),
    "renew": lambda _, out: out.renew(),
    "its process ends": lambda proc, _: processes.end(proc.handle, "exited", release=False),
    "its process is cancelled": lambda proc, _: processes.cancel(proc.store.prefix, proc.id),
}


def test_operations_make_exactly_the_documented_stream_transitions(store: Store) -> None:
    seen: dict[str, set[str]] = {state: set() for state in CONTENT_MOVES}
    first: dict[ContentState, Callable[[streams.StreamAppender], Operation[Any] | None]] = {
        "open": lambda _: None,
        "sealed": lambda out: out.seal(0),
        "broken": lambda out: out.break_off("disk full"),
    }
    for state, bring in first.items():
        for number, (name, step) in enumerate(STREAM_STEPS.items()):
            proc = store.process(f"{state}-{number}").child()
            out = store.run(streams.open_stream(proc.handle, "build"))
            for operation in (bring(out), step(proc, out)):
                if operation is not None:
                    with suppress(FDStoreError):
                        store.run(operation)
            after = proc.stat(out.fd).state
            if after != state:
                assert after in CONTENT_MOVES[state], f"{name}: {state} -> {after}"
                seen[state].add(after)

    assert seen == {state: set(moves) for state, moves in CONTENT_MOVES.items()}


def test_a_write_to_an_ended_process_says_what_can_be_done(store: Store) -> None:
    store.process("fixed").end()

    with pytest.raises(Fenced) as raised:
        store.process("fixed").create("x")

    assert "it has ended (exited); it can be read." in str(raised.value)
    assert "fdstore rm --tree fixed" in str(raised.value)
