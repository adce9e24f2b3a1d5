"""Child agents in a given state."""

from __future__ import annotations

from fdstore.client import Process, Store
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import leases, processes, waiting


def agent(store: Store, proc: Process, state: str = "ready") -> ProcessHandle:
    """Create a child agent in this state."""
    child = store.run(processes.create_child(proc.handle, ["fd:1"], state="ready"))
    if state == "ready":
        return child
    claimed = store.run(leases.claim(child.keys, "w"))
    assert isinstance(claimed, leases.Claim)
    running = ProcessHandle(child.keys, child.limits, claimed.attempt)
    if state == "waiting":
        below = store.run(processes.create_child(running, [], state="ready"))
        assert store.run(waiting.park(running, [below.id]))
    return running
