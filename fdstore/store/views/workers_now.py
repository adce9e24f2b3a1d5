"""The activity of each worker, by the leases of the live trees; and the queue.

A worker registers itself, but not what it runs: the processes name their worker. So the leases of the
trees used last are read, a bounded number of them.
"""

from __future__ import annotations

from fdstore.errors import DamagedRecord, StoreRefused
from fdstore.model.records import Moment, Record
from fdstore.setup.settings import queue_prefix
from fdstore.store.hashes import Hash
from fdstore.store.keys import ProcessKeys, TreeKeys, member_of
from fdstore.store.record_format import replies_of_trees, replies_or_damage
from fdstore.store.views.overview import recent_names
from fdstore.store.views.worker_registry import WorkerLoad, read_workers
from fdstore.wire.operation import Operation

MAX_TREES = 500
"""Trees whose leases are read: those used last."""

MAX_LEASES = 1_000


class Job(Record, frozen=True, kw_only=True):
    """A process that a worker runs, or that waits for one since `ready_at`; the lease expires at
    `lease_until`."""

    process: str
    state: str = ""
    program: str | None = None
    worker: str | None = None
    attempt: str = ""
    trouble: str = ""
    started_at: Moment | None = None
    lease_until: Moment | None = None
    ready_at: Moment | None = None


_JOB = Hash(Job, "process")


class WorkerActivity(Record, frozen=True, kw_only=True):
    """A worker: when it was last seen and until when its heartbeat counts (if that has passed, it vanished),
    its sandbox for commands, why it runs no agents ("" if it does), its load (None if that is not known),
    and what it runs now."""

    name: str
    seen_at: float
    alive_until: float
    commands: str
    no_agents: str
    load: WorkerLoad | None = None
    jobs: tuple[Job, ...] = ()


class WorkersNow(Record, frozen=True, kw_only=True):
    """All workers, those that vanished at the end, the jobs of workers that are not registered, and the
    processes that wait for one. `queued` counts the wake-ups in the queue (None: it is not in this Redis, or
    may not be read), `taken` the processes that run. `trees` is how many live ones were looked at."""

    workers: list[WorkerActivity]
    strays: list[Job]
    ready: list[Job]
    sweeper: str | None
    queued: int | None
    taken: int
    trees: int
    now_s: float

    @property
    def lapsed(self) -> list[Job]:
        """The processes whose lease is over and that nobody has taken over: they wait for a worker, too."""
        jobs = [*self.strays, *(job for each in self.workers for job in each.jobs)]
        return [each for each in jobs if each.lease_until is not None and each.lease_until < self.now_s]


def workers_now(prefix: str, *, has_queue: bool = True) -> Operation[WorkersNow]:
    """Return the workers and their work. Six round trips at most, of which each is bounded."""
    registered = yield from read_workers(prefix)
    queued = (yield from _queue(prefix)) if has_queue else None
    jobs, trees = yield from _jobs(prefix)
    names = {each.name for each in registered.workers}
    return WorkersNow(
        workers=[
            WorkerActivity(
                name=each.name,
                seen_at=each.seen_at,
                alive_until=each.alive_until,
                commands=each.commands,
                no_agents=each.no_agents,
                load=each.load,
                jobs=tuple(job for job in jobs if job.worker == each.name and job.state == "running"),
            )
            for each in sorted(registered.workers, key=lambda each: each.alive_until < registered.now_s)
        ],
        strays=[job for job in jobs if job.state == "running" and job.worker not in names],
        ready=[job for job in jobs if job.state == "ready"],
        sweeper=registered.sweeper,
        queued=queued,
        taken=sum(job.state == "running" for job in jobs),
        trees=trees,
        now_s=registered.now_s,
    )


def _queue(prefix: str) -> Operation[int | None]:
    """Return the length of the queue; None if this user may not read it, or it is something else."""
    try:
        [queued] = yield [("LLEN", f"{queue_prefix(prefix)}queue")]
    except (StoreRefused, DamagedRecord):
        return None
    return int(queued)


def _jobs(prefix: str) -> Operation[tuple[list[Job], int]]:
    """Return the processes with leases, and how many live trees have been looked at."""
    found = yield from recent_names(prefix, MAX_TREES)
    trees = [TreeKeys(prefix, name) for name in found.names]
    live = yield from replies_of_trees([("HGET", tree.record, "live") for tree in trees])
    trees = [
        tree for tree, count in zip(trees, live, strict=True) if isinstance(count, bytes) and count != b"0"
    ]
    leases = yield from replies_of_trees([("ZRANGE", tree.leases, 0, MAX_LEASES - 1) for tree in trees])
    members: list[ProcessKeys] = []
    for tree, ids in zip(trees, leases, strict=True):
        if isinstance(ids, list):
            members += [keys for each in ids if (keys := member_of(tree, each))]
    members = members[:MAX_LEASES]
    replies = yield from replies_or_damage([_JOB.read(keys.record) for keys in members])
    jobs = [
        _JOB.decode_readable(fields, process=keys.process)
        for keys, fields in zip(members, replies, strict=True)
        if not isinstance(fields, DamagedRecord) and fields[0] is not None
    ]
    return jobs, len(trees)
