"""Explain to people why ready processes have not been claimed by a worker.

Without workers, a spawned agent or a pipeline stays ready until its caller stops waiting. That is an error
only for callers that require a worker.
"""

from __future__ import annotations

from fdstore.errors import NotFound, NoWorker
from fdstore.store.processes import process_records
from fdstore.store.views import worker_registry
from fdstore.wire.operation import Operation

PATIENCE_S = 3.0
"""The time that a caller waits before it explains the delay."""


def no_worker(prefix: str, *, for_agents: bool) -> Operation[str]:
    """Return why no worker can claim an agent (or a pipeline) now; "" if one can. One round trip."""
    living = (yield from worker_registry.read_workers(prefix)).alive
    if not living:
        return "no worker takes processes of this store; start one with: fdstore worker, or fdstore up"
    if not for_agents:
        return ""
    if any(not each.no_agents for each in living):
        return ""
    return f"no worker of this store takes agents; {living[0].name} says: {living[0].no_agents}"


def require_worker(prefix: str, *, for_agents: bool) -> Operation[None]:
    """Check that a live worker can claim an agent (or a pipeline). Raises `NoWorker`."""
    problem = yield from no_worker(prefix, for_agents=for_agents)
    if problem:
        raise NoWorker(problem)


def why_unclaimed(prefix: str, processes: list[str]) -> Operation[str]:
    """Return why some of these processes are still unclaimed; "" if no process waits for a worker."""
    waiting = []
    for process in processes:
        try:
            record = yield from process_records.record(prefix, process)
        except NotFound:
            continue
        if record.state == "ready":
            waiting.append(record)
    if not waiting:
        return ""
    names = ", ".join(record.id for record in waiting)
    problem = yield from no_worker(prefix, for_agents=any(record.kind is None for record in waiting))
    return f"{names} waits for a worker: {problem or 'all live workers are busy'}"
