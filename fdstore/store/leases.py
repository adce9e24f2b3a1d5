"""Leases: who runs a process now, and what becomes of one whose worker is gone.

Running a process means holding its lease. Each claim is a new attempt; every write carries its number,
and the scripts refuse an older one, so a worker that was believed dead and comes back writes nothing.

`leases` of a tree says for each process when somebody must look at it: when its lease runs out, or,
for one that is ready, when its wake-up must have been lost.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from fdstore.errors import DamagedRecord
from fdstore.records import TreeLimits, Unreadable
from fdstore.store.clock import redis_now
from fdstore.store.content_info import ProcessHandle
from fdstore.store.decoding import (
    FORMAT,
    decoding,
    limits_of,
    replies_or_damage,
    show_bytes,
    timestamp,
    unreadable,
    whole_number,
)
from fdstore.store.keys import ProcessKeys, TreeKeys, member_of
from fdstore.store.outcomes import outcome
from fdstore.wire.operation import Batch, Operation, Value, new_op
from fdstore.wire.scripts import script, text

LEASE_S = 10.0
RENEW_EVERY_S = 3.0
SWEEP_EVERY_S = 3.0
WAKE_AGAIN_S = 10.0
"""How long a ready process may wait for a worker before its wake-up is sent again."""

MAX_LOSSES = 3

Kind = Literal["agents", "pipelines", "neither"]
"""What a worker runs that does not run everything; "neither" only asks what a process is."""

LeftAlone = Literal["pipeline", "agent", "alone"]
"""Why a ready process was not taken."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A process taken to be run, with all that running it begins with: the attempt, its program's name
    and the bundle (JSON) it is in, the streams it was made to write, the tree's limits, its journal.
    `age_s` is how long ago it was started, by the clock of Redis; `wakes` how often the sweep had sent its
    wake-up in vain. `alone_until` is the length of the journal up to which it must have an operating-system
    process of its own, None for any."""

    attempt: int
    program: str
    bundle: str
    parent: str
    is_pipeline: bool
    age_s: float
    wakes: int
    outputs: tuple[str, ...]
    limits: TreeLimits
    alone_until: int | None
    journal: list[bytes]


def claim(
    keys: ProcessKeys,
    worker: str,
    op: str | None = None,
    *,
    only: Kind | None = None,
    with_others: bool = False,
) -> Operation[Claim | LeftAlone | None]:
    """Take a ready process. None when it is not ready, "pipeline" or "agent" for one that `only` leaves
    out, "alone" for one that may not run `with_others` in one operating-system process. With the same `op`
    it may be asked again: what it took is then its own. One round trip. Raises `NotFound`, `UnsafeStore`,
    `NewerFormat` (it stays ready), `DamagedRecord`."""
    flags = (only or "", FORMAT, "1" if with_others else "0")
    arguments = (keys.process, worker, LEASE_S, op or new_op(), *flags)
    # the journal is read after the claim: whoever ran the process before can add nothing now
    reply, records = yield [
        script("claim")((keys.tree.record, keys.record), *arguments),
        ("LRANGE", keys.journal, 0, -1),
    ]
    if reply[0] == b"no":
        return None
    if reply[0] == b"pipeline":
        return "pipeline"
    if reply[0] == b"agent":
        return "agent"
    if reply[0] == b"alone":
        return "alone"
    attempt, program, bundle, parent, kind, started_at, outputs, limits, now, wakes, alone_until = outcome(
        reply, keys.process
    )
    with decoding(f"the record of process {keys.process}"):
        return Claim(
            attempt=whole_number(attempt, 1),
            program=text(program),
            bundle=text(bundle),
            parent=text(parent),
            is_pipeline=kind == b"pipeline",
            age_s=max(0.0, float(now) - timestamp(started_at)),
            wakes=whole_number(wakes) if isinstance(wakes, bytes) else int(wakes),
            outputs=tuple(text(outputs).split()),
            limits=limits_of(keys.tree.tree, limits),
            alone_until=whole_number(alone_until) if alone_until else None,
            journal=records,
        )


def renew(handle: ProcessHandle, trouble: str | None = None) -> Operation[None]:
    """Keep the lease. `trouble` says for people what the process is held up by, "" that nothing holds it up
    any more. Raises `Fenced`, `NotFound`."""
    keys = handle.keys
    arguments: list[Value] = [keys.process, handle.attempt, LEASE_S]
    if trouble is not None:
        arguments.append(trouble)
    [reply] = yield [script("renew")((keys.tree.record, keys.record), *arguments)]
    outcome(reply, keys.process)


def park(handle: ProcessHandle, children: list[str], seconds: float | None = None) -> Operation[bool]:
    """Gives the worker back until these children have ended, for at most so long; False when they have
    already. Raises `Fenced`, `NotFound`."""
    keys = handle.keys
    until = "" if seconds is None else max(seconds, 0.0)
    arguments = (handle.id, handle.attempt, until, *children)
    [reply] = yield [script("wait")((keys.tree.record, keys.record), *arguments)]
    return text(outcome(reply, handle.id)[0]) == "waiting"


class Lapsed(msgspec.Struct, frozen=True):
    """What a look at a process decided: `wake` it, it is `poison` under `attempt`, it is a pipeline whose
    worker is `lost`, or nothing."""

    decision: str
    attempt: int | None = None


def look_after(
    keys: ProcessKeys, max_losses: int = MAX_LOSSES, moment: float | None = None
) -> Operation[Lapsed]:
    """Decides about a process that is due: its lease had run out by `moment` (by now), or its wake-up
    may be lost. Raises `DamagedRecord`."""
    return (yield from _lapse(keys, max_losses, "0", "", "" if moment is None else f"{moment:.6f}"))


def record_loss(keys: ProcessKeys, claim_id: str, max_losses: int = MAX_LOSSES) -> Operation[Lapsed]:
    """Count a loss of a process whose worker is known to be dead, if it still runs under that worker's
    claim; else nothing is changed."""
    return (yield from _lapse(keys, max_losses, "2", claim_id, ""))


def give_back(
    handle: ProcessHandle, in_vain: int | None = None, *, has_begun: bool = True
) -> Operation[Lapsed]:
    """Makes a running process ready for another worker. No loss: its worker stops in good order, or is too
    old for it; then `in_vain` says how often its wake-up had been sent in vain before this attempt, and the
    sweep's pauses go on doubling. A pipeline that has begun stays: its commands may have done anything."""
    times = [] if in_vain is None else [in_vain]
    how = "1" if has_begun else "3"
    return (yield from _lapse(handle.keys, MAX_LOSSES, how, handle.attempt, "", *times))


def _lapse(
    keys: ProcessKeys, max_losses: int, how: str, holder: str, moment: str, *in_vain: int
) -> Operation[Lapsed]:
    arguments: list[Value] = [keys.process, max_losses, WAKE_AGAIN_S, how, holder, moment, *in_vain]
    [reply] = yield [script("lapse")((keys.tree.record, keys.record), *arguments)]
    decision, *of = outcome(reply, keys.process)
    with decoding(f"the record of process {keys.process}"):
        decided = text(decision)
        return Lapsed(decided, whole_number(of[0] or b"") if of and decided in ("poison", "lost") else None)


class Due(msgspec.Struct, frozen=True):
    """The processes that somebody must look at, and what could not be read: of which tree, and what."""

    processes: list[ProcessKeys]
    unreadable: list[tuple[str, Unreadable]]


def due(prefix: str, trees: list[str], now_s: float) -> Operation[Due]:
    """The processes of these trees that somebody must look at. One round trip, if no tree is damaged."""
    requests: Batch = [
        ("ZRANGEBYSCORE", TreeKeys(prefix, tree).leases, "-inf", f"{now_s:.6f}") for tree in trees
    ]
    found = Due([], [])
    for tree, reply in zip(trees, (yield from replies_or_damage(requests)), strict=True):
        if isinstance(reply, DamagedRecord):
            found.unreadable.append((tree, unreadable(reply)))
            continue
        for name in reply:
            member = member_of(TreeKeys(prefix, tree), name)
            if member is not None:
                found.processes.append(member)
            else:
                where, problem = f"{TreeKeys(prefix, tree).leases}", f"{show_bytes(name)} is no process of it"
                found.unreadable.append((tree, Unreadable(what=where, problem=problem)))
    return found


class Watch:
    """Tells when a lease that has run out is a loss: when its holder had time to renew it.

    Nobody can while Redis is away, stopped, or on the other side of a cut cable; and after its clock
    was set, or this program slept, a lease looks older than it is. All of these are a gap in what a
    watcher sees of Redis' clock. After a gap, as when it has just begun, a watcher knows nothing, so it
    leaves holders half a lease to renew theirs: they try every `RENEW_EVERY_S` at least. A shorter gap
    is no matter, since a lease that was kept had more than that left when it began.
    """

    def __init__(self) -> None:
        self._seen = float("-inf")
        self._since = float("-inf")

    def look(self, now: float) -> float:
        """Notes that Redis said it is `now`; in how many seconds leases may be judged, 0.0 for at once."""
        if not 0 <= now - self._seen <= LEASE_S / 2:
            self._since = now
        self._seen = now
        return max(0.0, self._since + LEASE_S / 2 - now)


TAKEN = "taken"
"""What a worker that takes agents says of them."""


def workers_key(prefix: str) -> str:
    return f"{prefix}:workers"


def commands_key(prefix: str) -> str:
    return f"{prefix}:workers:commands"


def agents_key(prefix: str) -> str:
    return f"{prefix}:workers:agents"


def register_worker(
    prefix: str,
    worker: str,
    for_s: float,
    now_s: float,
    commands: str = "",
    no_agents: str = "",
) -> Operation[None]:
    """Says at `now_s`, by the clock of Redis, that a worker lives for so many seconds, what commands run in
    there, and why it takes no agents ("" if it does); forgets workers that said so too long ago."""
    [found, *_] = yield [
        ("ZRANGEBYSCORE", workers_key(prefix), "-inf", f"{now_s - 60:.3f}"),
        ("ZADD", workers_key(prefix), f"{now_s + for_s:.3f}", worker),
        ("HSET", commands_key(prefix), worker, commands),
        ("HSET", agents_key(prefix), worker, no_agents or TAKEN),
    ]
    if dead := [each for each in found if each != worker.encode()]:
        yield _forgotten(prefix, *dead)


def unregister_worker(prefix: str, worker: str) -> Operation[None]:
    """Forgets a worker that stops."""
    yield _forgotten(prefix, worker)


def _forgotten(prefix: str, *workers: Value) -> Batch:
    hashes = (commands_key(prefix), agents_key(prefix))
    return [("ZREM", workers_key(prefix), *workers), *(("HDEL", key, *workers) for key in hashes)]


def commands_of(prefix: str, workers: list[str]) -> Operation[list[str]]:
    """What commands run in at each of these workers, in words for people; "" for one that did not say."""
    if not workers:
        return []
    [found] = yield [("HMGET", commands_key(prefix), *workers)]
    return [show_bytes(each or b"") for each in found]


def agents_of(prefix: str, workers: list[str]) -> Operation[list[str]]:
    """Why each of these workers takes no agents; "" for one that does."""
    if not workers:
        return []
    [found] = yield [("HMGET", agents_key(prefix), *workers)]
    return ["" if each in (None, TAKEN.encode()) else show_bytes(each) for each in found]


def takes_agents(prefix: str) -> Operation[bool]:
    """Return whether a worker lives that takes agents. Three round trips."""
    living = yield from workers(prefix)
    return "" in (yield from agents_of(prefix, living))


def workers(prefix: str) -> Operation[list[str]]:
    """The workers that live, by the clock of Redis. Two round trips."""
    now_s = yield from redis_now()
    [found] = yield [("ZRANGEBYSCORE", workers_key(prefix), f"{now_s:.3f}", "+inf")]
    return [show_bytes(worker) for worker in found]


def take_sweep(prefix: str, worker: str, seconds: float) -> Operation[bool]:
    """Whether this worker is the one that sweeps now: one does, for `seconds`."""
    key, ttl_ms = f"{prefix}:sweeper", int(seconds * 1000)
    taken, holder = yield [("SET", key, worker, "NX", "PX", ttl_ms), ("GET", key)]
    if taken is None and holder == worker.encode():
        yield [("PEXPIRE", key, ttl_ms)]
    return taken is not None or holder == worker.encode()
