"""The workers that may run a process: what its program needs, compared with what their operators allow.

A worker does not claim what it may not run: another may be allowed to. Workers register their permissions
(`worker_registry`), so that each knows what the others allow, and `ps`, `top`, the inspector and `run` can
say that no live worker accepts a process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from fdstore.agents.loop.program_loader import Bundle
from fdstore.errors import DamagedRecord, InvalidProgram, NewerFormat, NotAllowed, PathRefused
from fdstore.files.permissions import Permissions
from fdstore.model.model_servers import ModelServer
from fdstore.model.records import ProcessRecord
from fdstore.store.clock import redis_now
from fdstore.store.keys import ProcessKeys, process_keys
from fdstore.store.processes import process_records
from fdstore.store.processes.asks import LaneTask
from fdstore.store.record_format import decode_record, replies_or_damage, show_bytes
from fdstore.store.views import worker_check
from fdstore.store.views.health import read_health
from fdstore.store.views.live import LiveSnapshot, live
from fdstore.store.views.shown_processes import fold_lanes
from fdstore.store.views.worker_registry import RegisteredWorker, read_workers
from fdstore.tools.process_task import PipeTask
from fdstore.wire.operation import Batch, Operation

MAX_EXPLAINED = 500


class Needs(msgspec.Struct, frozen=True):
    """The Python functions and commands that a process runs, the `[export] root` of its program, and the
    server of the model that it asks, if it asks one."""

    python: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    export_root: str | None = None
    is_pipeline: bool = False
    server: ModelServer | None = None

    def check(self, permissions: Permissions) -> None:
        """Raise `NotAllowed` or `PathRefused` if the permissions do not include these."""
        permissions.check_python(self.python)
        permissions.check_commands(self.commands)
        permissions.resolve_export_root(self.export_root)
        if self.server is not None:
            permissions.models.check(self.server)


def read_needs(members: list[ProcessKeys]) -> Operation[list[Needs]]:
    """Return what each of these processes needs; nothing for one that is missing or unreadable, which its
    attempt finds out. Two round trips, if no record is damaged."""
    records = yield from replies_or_damage(
        [("HMGET", each.record, "kind", "program", "bundle") for each in members]
    )
    found = [[None] * 3 if isinstance(record, DamagedRecord) else record for record in records]
    reads: Batch = [
        ("LINDEX", member.journal, 0)
        if kind in (b"pipeline", b"asks")
        else ("HGET", member.tree.programs, bundle or b"")
        for member, (kind, _, bundle) in zip(members, found, strict=True)
    ]
    texts = yield from replies_or_damage(reads)
    return [
        _parse(text, kind, show_bytes(program or b"")) if isinstance(text, bytes) else Needs()
        for (kind, program, _), text in zip(found, texts, strict=True)
    ]


def _parse(text: bytes, kind: bytes | None, program: str) -> Needs:
    try:
        if kind == b"asks":
            return Needs(server=decode_record(text, LaneTask, "the task of a lane").server)
        if kind == b"pipeline":
            task = decode_record(text, PipeTask, "the task of a pipeline")
            return Needs(commands=tuple(argv[0] for argv in task.commands), is_pipeline=True)
        found = Bundle.from_json(text).programs[program]
        return Needs(python=found.python, export_root=found.export_root, server=found.server)
    except (DamagedRecord, InvalidProgram, NewerFormat, LookupError):
        return Needs()


def refusal(worker: RegisteredWorker, needs: Needs) -> str:
    """Return why a worker does not run a process with these needs; "" if it does."""
    try:
        needs.check(worker_check.permissions_of(worker))
    except (NotAllowed, PathRefused) as error:
        return str(error)
    return "" if needs.is_pipeline else worker_check.model_refusal(worker, needs.server or ModelServer())


def describe_permissions(permissions: Permissions) -> str:
    """Encode for the registration of a worker what other workers need to know of its permissions: not where
    its directories are."""
    shared = Permissions(
        all_allowed=permissions.all_allowed,
        python=permissions.python,
        commands=permissions.commands,
        commands_off=permissions.commands_off,
        export_root=None if permissions.export_root is None else ".",
        models=permissions.models,
    )
    return msgspec.json.encode(shared).decode()


def eligible_elsewhere(prefix: str, worker: str, processes: Iterable[str]) -> Operation[list[str]]:
    """Return those of these processes that a live worker other than `worker` may run. At most three
    round trips."""
    names = list(processes)
    others = [each for each in (yield from read_workers(prefix)).alive if each.name != worker]
    if not others:
        return []
    needs = yield from read_needs([process_keys(prefix, name) for name in names])
    return [
        name
        for name, need in zip(names, needs, strict=True)
        if any(not refusal(each, need) for each in others)
    ]


def why_ineligible(prefix: str, processes: list[str]) -> Operation[dict[str, str]]:
    """Return the processes that no live worker accepts, and why. At most three round trips."""
    if not processes:
        return {}
    living = (yield from read_workers(prefix)).alive
    if not living:
        return dict.fromkeys(processes, worker_check.NO_WORKER)
    needs = yield from read_needs([process_keys(prefix, process) for process in processes])
    found = {}
    for process, need in zip(processes, needs, strict=True):
        refusals = [refusal(each, need) for each in living]
        if all(refusals):
            found[process] = f"no live worker accepts it; {living[0].name} says: {refusals[0]}"
    return found


def explained(prefix: str, processes: Sequence[ProcessRecord]) -> Operation[list[ProcessRecord]]:
    """Return these processes; the trouble of a ready one that no live worker accepts says so, and if no
    worker lives, that of one that has no other. At most three round trips, and none if no process is ready.
    Of thousands, the first `MAX_EXPLAINED` are examined."""
    ready = [process.id for process in processes if process.state == "ready"]
    why = yield from why_ineligible(prefix, ready[:MAX_EXPLAINED])
    return [
        msgspec.structs.replace(process, trouble=reason)
        if (reason := why.get(process.id)) and not (process.trouble and reason == worker_check.NO_WORKER)
        else process
        for process in processes
    ]


def live_explained(prefix: str, *, ended: bool = False) -> Operation[LiveSnapshot]:
    """Return `live(prefix)` with its processes as people see them, `explained`, and the health of the
    store."""
    found = yield from live(prefix, ended=ended)
    folded = yield from fold_lanes(prefix, found.processes)
    processes = yield from explained(prefix, folded)
    health = yield from read_health(prefix)
    return msgspec.structs.replace(found, processes=tuple(processes), health=tuple(health))


def why_unclaimed(prefix: str, process: str) -> Operation[str]:
    """Return why no worker has claimed a process yet; "" if it does not wait for one."""
    general = yield from worker_check.why_unclaimed(prefix, [process])
    if not general:
        return ""
    why = yield from why_ineligible(prefix, [process])
    specific = why.get(process)
    if specific is None:
        return f"{process} waits for a worker: {worker_check.BUSY}"
    return general if specific == worker_check.NO_WORKER else f"{process} waits: {specific}"


def why_not_going_on(prefix: str, process: str) -> Operation[str]:
    """Return why a process does not go on: no worker claims it, or its worker was lost and no worker lives
    that would notice; "" if it does. Raises `NotFound`."""
    record = yield from process_records.record(prefix, process)
    if record.state == "ready":
        return (yield from why_unclaimed(prefix, process))
    until = record.lease_until
    if record.state != "running" or until is None or until >= (yield from redis_now()):
        return ""
    if (yield from read_workers(prefix)).alive:
        return ""
    return f"{process}: the lease of {record.worker or 'its worker'} has expired; {worker_check.NO_WORKER}"
