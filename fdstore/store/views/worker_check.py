"""Explain to people why ready processes have not been claimed by a worker.

Without workers, a spawned agent or a pipeline stays ready until its caller stops waiting. That is an error
only for callers that require a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fdstore.errors import DamagedRecord, NotAllowed, NotFound, NoWorker
from fdstore.files.permissions import Permissions
from fdstore.model.model_servers import ModelServer
from fdstore.model.records import ProcessRecord
from fdstore.store.processes import process_records
from fdstore.store.record_format import decode_record
from fdstore.store.views import worker_registry
from fdstore.wire.operation import Operation

NO_WORKER = "no worker takes processes of this store; start one with: fdstore worker, or fdstore up"

BUSY = "all live workers are busy"

PATIENCE_S = 3.0
"""The time that a caller waits before it explains the delay."""


def no_worker(
    prefix: str, *, for_agents: bool, commands: Sequence[str] = (), servers: Sequence[ModelServer] = ()
) -> Operation[str]:
    """Return why no worker can claim an agent (or a pipeline of these commands) now; "" if one can. With
    `servers` there must be one for agents that ask each of them. One round trip."""
    living = (yield from worker_registry.read_workers(prefix)).alive
    if not living:
        return NO_WORKER
    if refusals := _refusals(living, commands):
        return f"no worker of this store may run it; {living[0].name} says: {refusals[0]}"
    if not for_agents:
        return ""
    for server in servers or [ModelServer()]:
        reasons = [model_refusal(each, server) for each in living]
        if all(reasons):
            which = "takes agents" if server.is_own else "takes agents of this server of models"
            return f"no worker of this store {which}; {living[0].name} says: {reasons[0]}"
    return ""


def model_refusal(worker: worker_registry.RegisteredWorker, server: ModelServer) -> str:
    """Return why a worker asks no model of this server; "" if it does."""
    models = permissions_of(worker).models
    try:
        models.check(server)
    except NotAllowed as error:
        return str(error)
    return models.missing(server, worker.no_agents)


def require_worker(
    prefix: str, *, for_agents: bool, commands: Sequence[str] = (), servers: Sequence[ModelServer] = ()
) -> Operation[None]:
    """Check that a live worker can claim an agent (or a pipeline of these commands). Raises `NoWorker`."""
    problem = yield from no_worker(prefix, for_agents=for_agents, commands=commands, servers=servers)
    if problem:
        raise NoWorker(problem)


def check_commands(prefix: str, commands: Sequence[str]) -> Operation[None]:
    """Check that one of the live workers, if there are any, may run these commands. One round trip. Raises
    `NotAllowed`: a caller that waits for a pipeline would wait in vain."""
    living = (yield from worker_registry.read_workers(prefix)).alive
    if refusals := _refusals(living, commands):
        raise refusals[0]


def _refusals(living: list[worker_registry.RegisteredWorker], commands: Sequence[str]) -> list[NotAllowed]:
    """Return why each of these workers may not run these commands; [] if one may."""
    found = []
    for worker in living:
        try:
            permissions_of(worker).check_commands(commands)
        except NotAllowed as error:
            found.append(error)
        else:
            return []
    return found


def permissions_of(worker: worker_registry.RegisteredWorker) -> Permissions:
    """Return what the operator of a worker allows."""
    try:
        return decode_record(worker.permissions or "{}", Permissions, "the permissions of a worker")
    except DamagedRecord:
        return Permissions()  # unknown, as of an older worker: it decides by itself


def why_unclaimed(
    prefix: str,
    processes: list[str],
    servers_for: Callable[[ProcessRecord], Sequence[ModelServer]] = lambda _: (),
) -> Operation[str]:
    """Return why some of these processes are still unclaimed; "" if no process waits for a worker.
    `servers_for` returns the servers of models that one asks, none if that is not known."""
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
    agents = any(record.kind != "pipeline" for record in waiting)
    servers = list(dict.fromkeys(server for record in waiting for server in servers_for(record)))
    problem = yield from no_worker(prefix, for_agents=agents, servers=servers)
    return f"{names} waits for a worker: {problem or BUSY}"
