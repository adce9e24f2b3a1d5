"""Child agents in a given state."""

from __future__ import annotations

from fdstore.client import Process, Store
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import leases, processes, waiting


def claim(store: Store, process: str, worker: str = "w") -> ProcessHandle:
    """Claim a ready process, as a worker that the test plays."""
    keys = process_keys("fdstore", process)
    claimed = store.run(leases.claim(keys, worker))
    assert isinstance(claimed, leases.Claim)
    return ProcessHandle(keys, claimed.limits, claimed.attempt)


def agent(store: Store, proc: Process, state: str = "ready") -> ProcessHandle:
    """Create a child agent in this state."""
    child = store.run(processes.create_child(proc.handle, ["fd:1"], state="ready"))
    if state == "ready":
        return child
    running = claim(store, child.id)
    if state == "waiting":
        below = store.run(processes.create_child(running, [], state="ready"))
        assert store.run(waiting.park(running, [below.id]))
    return running
