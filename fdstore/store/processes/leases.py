"""Leases: which worker runs a process, and recovery of processes whose worker is lost.

Running a process means holding its lease. Each claim is a new attempt; every write carries the attempt's
number, and the scripts refuse an older one, so a worker that was presumed dead is fenced off.

The `leases` key of a tree has for each process the time of its next check by the sweep: when its lease
expires or, for a ready process, when its wake-up counts as lost.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable
from typing import Literal, TypeVar

import msgspec

from fdstore.errors import DamagedRecord, Fenced, NotFound
from fdstore.model.ends import Reason, find
from fdstore.model.records import Count, Moment, Ordinal, Seconds, TreeLimits, Unreadable
from fdstore.store.clock import seconds_of
from fdstore.store.hashes import Hash, pairs
from fdstore.store.keys import ProcessKeys, TreeKeys, member_of
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes.process_records import PROCESS
from fdstore.store.record_format import (
    FORMAT,
    decode_ordinal,
    decoding,
    limits_of,
    replies_of_trees,
    replies_or_damage,
    show_bytes,
    unreadable,
)
from fdstore.wire.operation import Batch, Command, Operation, new_op
from fdstore.wire.script_constants import MAX_DOUBLINGS
from fdstore.wire.scripts import script, text, though_full

T = TypeVar("T")

LEASE_S = 10.0
RENEW_EVERY_S = 3.0
SWEEP_EVERY_S = 3.0
WAKE_AGAIN_S = 3.0
"""The time that a ready process may wait for a worker before its wake-up is sent again. Short, because a
worker that dies may have received the first one."""

OBSERVED_S = 3600
"""TTL in seconds of what the sweepers observed of the Redis clock."""

MAX_LOSSES = 3
"""The number of workers that a process may crash."""

Kind = Literal["agents", "pipelines", "neither"]
"""The only kind of process that a worker runs; "neither" only finds out the kind of a process. A lane of asks
counts as an agent: it needs the model."""

ClaimRefusal = Literal["pipeline", "agent", "alone"]
"""The reason that a ready process was not claimed: its kind, or that it must run alone."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A claimed process, with everything needed to run it: the attempt, its program's name and the bundle
    (JSON) that contains it, the streams it was created to write, the tree's limits, its journal. `claimed_at`
    is the Redis time; `wakes` how often the sweep has sent its wake-up in vain. Up to the journal length
    `alone_until` it must run in an operating-system process of its own; None: it may share one.
    `is_takeover`: the first attempt after a loss; `waited`: the last attempt that waited for children.
    `traceparent` is that of its creator, `traced` that of its last attempt ("" if they were not traced)."""

    attempt: Ordinal
    worker: str
    claimed_at: Moment
    started_at: Moment
    limits: TreeLimits
    journal: list[bytes]
    losses: Count = 0
    is_takeover: bool = False
    waited: Count | None = None
    traceparent: str = ""
    traced: str = ""
    program: str = ""
    bundle: str = ""
    parent: str = ""
    kind: str = ""
    wakes: Count = 0
    outputs: tuple[str, ...] = ()
    alone_until: Count | None = None
    for_person_s: Seconds = 0.0

    @property
    def is_pipeline(self) -> bool:
        return self.kind == "pipeline"

    @property
    def is_lane(self) -> bool:
        return self.kind == "asks"

    @property
    def age_s(self) -> float:
        """The time since the process was started, without that for which it has waited for a person."""
        return max(0.0, self.claimed_at - self.started_at - self.for_person_s)

    @property
    def has_waited(self) -> bool:
        """Whether the attempt before waited for children."""
        return self.waited == self.attempt - 1

    @property
    def task(self) -> bytes | None:
        """The first record of the journal; None if it is missing."""
        return self.journal[0] if self.journal else None


_CLAIM = Hash(Claim)


def holder_name(where: str) -> str:
    """Return a name for what holds leases here, `where:pid-random`. No other has it: containers may share the
    name of their host, and each has a process 1. Call it once, before forks that share the name."""
    return f"{where}:{os.getpid()}-{secrets.token_hex(3)}"


def claim(
    keys: ProcessKeys,
    worker: str,
    op: str | None = None,
    *,
    only: Kind | None = None,
    with_others: bool = False,
) -> Operation[Claim | ClaimRefusal | None]:
    """Claim a ready process. Return None if it is not ready, "pipeline" or "agent" if `only` excludes it,
    "alone" if it may not run `with_others` in one operating-system process. Idempotent by `op`. One round
    trip. Raises `NotFound`, `UnsafeStore`, `NewerFormat` (it stays ready), `DamagedRecord`."""
    command = script("claim")(
        tree=keys.tree.record,
        process=keys.record,
        process_id=keys.process,
        worker=worker,
        lease_s=LEASE_S,
        claim=op or new_op(),
        runs=only or "",
        known_format=FORMAT,
        has_others="1" if with_others else "0",
    )
    # read the journal after the claim: from then on the previous attempt is fenced and cannot append
    reply, records = yield [command, ("LRANGE", keys.journal, 0, -1)]
    if reply[0] == b"no":
        return None
    if reply[0] == b"pipeline":
        return "pipeline"
    if reply[0] == b"agent":
        return "agent"
    if reply[0] == b"alone":
        return "alone"
    with decoding(f"the record of process {keys.process}"):
        fields = pairs(outcome(reply, keys.process))
        limits = limits_of(keys.tree.tree, fields["limits"])
        return _CLAIM.decode(fields, worker=worker, limits=limits, journal=records)


UNCHANGED = "*"


def renew(handle: ProcessHandle, trouble: str | None = None, traced: str = "") -> Operation[None]:
    """Renew the lease. `trouble` describes for people what blocks the process, "" clears it; `traced` is
    the traceparent of this attempt, for the next one. Raises `Fenced`, `NotFound`."""
    keys = handle.keys
    command = script("renew")(
        tree=keys.tree.record,
        process=keys.record,
        process_id=keys.process,
        attempt=handle.attempt,
        lease_s=LEASE_S,
        blocked_by=UNCHANGED if trouble is None else trouble,
        traceparent=traced,
    )
    [reply] = yield [command]
    outcome(reply, keys.process)


def check_held(handle: ProcessHandle) -> Operation[None]:
    """Check that this attempt still runs the process. Only reads. Raises `Fenced`, `NotFound`."""
    [reply] = yield [_read_holder(handle)]
    state, attempt = reply
    if state is None:
        raise NotFound(f"process {handle.id}")
    if not _is_held(handle, reply):
        raise Fenced(handle.id, f"it is {show_bytes(state)}, attempt {show_bytes(attempt or b'')}")


def not_held(handles: list[ProcessHandle]) -> Operation[list[ProcessHandle]]:
    """Return those of these attempts that no longer run their processes, in one round trip. Only reads; a
    damaged record is left to the next renewal."""
    replies = yield from replies_or_damage([_read_holder(handle) for handle in handles])
    return [
        handle
        for handle, reply in zip(handles, replies, strict=True)
        if not isinstance(reply, DamagedRecord) and not _is_held(handle, reply)
    ]


def _read_holder(handle: ProcessHandle) -> Command:
    return ("HMGET", handle.keys.record, "state", "attempt")


def _is_held(handle: ProcessHandle, reply: list[bytes | None]) -> bool:
    return reply == [b"running", handle.attempt.encode("ascii")]


class LapseDecision(msgspec.Struct, frozen=True):
    """The decision about an overdue process: `wake` it, `end` it for a `reason` (of the loss of
    `attempt`), or `nothing` to do. `is_loss`: its worker was lost."""

    decision: str
    attempt: int | None = None
    reason: Reason | None = None
    is_loss: bool = False


def check_overdue(
    keys: ProcessKeys, max_losses: int = MAX_LOSSES, moment: float | None = None
) -> Operation[LapseDecision]:
    """Decide what to do about a due process: its lease had expired by `moment` (default: now), or its
    wake-up may be lost. A loss found here is not its doing: a supervisor reports those that are. Raises
    `DamagedRecord`."""
    return (yield from _lapse(keys, max_losses, expired_by="" if moment is None else f"{moment:.6f}"))


def record_loss(
    keys: ProcessKeys, claim_id: str, max_losses: int = MAX_LOSSES, *, is_to_blame: bool = True
) -> Operation[LapseDecision]:
    """Count a loss of a process whose worker is known to be dead, which counts against the process if it
    `is_to_blame`. If it no longer runs under that worker's claim, nothing changes."""
    return (yield from _lapse(keys, max_losses, "crashed" if is_to_blame else "dead", claim_id))


def return_to_queue(
    handle: ProcessHandle, in_vain: int | None = None, trouble: str = "", *, has_begun: bool = True
) -> Operation[LapseDecision]:
    """Return a running process to the queue for another worker, without counting a loss: this worker shuts
    down, or cannot run it. In the latter case `in_vain` is how often its wake-up had been sent in vain before
    this attempt, so that the sweep's back-off continues, and `trouble` says why, for people. A pipeline that
    has begun is not returned: its commands may have had side effects."""
    how = "returned" if has_begun else "unstarted"
    sent_in_vain = "" if in_vain is None else in_vain
    return (
        yield from _lapse(
            handle.keys, MAX_LOSSES, how, handle.attempt, sent_in_vain=sent_in_vain, why=trouble
        )
    )


def _lapse(
    keys: ProcessKeys,
    max_losses: int,
    how: str = "",
    of_claim: str = "",
    *,
    expired_by: str = "",
    sent_in_vain: int | str = "",
    why: str = "",
) -> Operation[LapseDecision]:
    command = script("lapse")(
        tree=keys.tree.record,
        process=keys.record,
        process_id=keys.process,
        most_losses=max_losses,
        check_s=WAKE_AGAIN_S,
        how=how,
        of_claim=of_claim,
        expired_by=expired_by,
        lease_s=LEASE_S,
        sent_in_vain=sent_in_vain,
        why=why,
    )
    [reply] = yield [command]
    decision, *of = outcome(reply, keys.process)
    with decoding(f"the record of process {keys.process}"):
        decided = text(decision)
        if decided == "end":
            attempt, name = of
            return LapseDecision(decided, decode_ordinal(attempt or b""), find(text(name)), is_loss=True)
        return LapseDecision(decided, is_loss=of[1:] == [b"1"])


class DueProcesses(msgspec.Struct, frozen=True):
    """The processes that must be checked, and the unreadable records with their trees."""

    processes: list[ProcessKeys]
    unreadable: list[tuple[str, Unreadable]]


def find_due(prefix: str, trees: list[str], now_s: float) -> Operation[DueProcesses]:
    """Return the processes of these trees that must be checked: their time has come, or it is further away
    than it can be, because the Redis clock was set back. Two round trips at most, if no tree is damaged."""
    keys = {tree.leases: tree for tree in (TreeKeys(prefix, name) for name in trees)}
    due, later, damaged = yield from read_schedule(keys, now_s, LEASE_S, member_of, "process")
    return DueProcesses(due + (yield from _due_too_late(later)), damaged)


def read_schedule(
    keys: dict[str, TreeKeys],
    now_s: float,
    longest_s: float,
    read: Callable[[TreeKeys, bytes], T | None],
    kind: str,
) -> Operation[tuple[list[T], list[tuple[T, float]], list[tuple[str, Unreadable]]]]:
    """Return what is due of these sorted sets, whose scores are times, what is due in more than twice
    `longest_s`, with the seconds until then, and what cannot be read, with its tree. `read` decodes a member,
    None if it is no `kind` of that tree."""
    batch: Batch = [("ZRANGEBYSCORE", key, "-inf", f"{now_s:.6f}") for key in keys]
    batch += [("ZRANGEBYSCORE", key, f"({now_s + 2 * longest_s:.6f}", "+inf", "WITHSCORES") for key in keys]
    replies = yield from replies_of_trees(batch)
    due: list[T] = []
    damaged: list[tuple[str, Unreadable]] = []
    for (key, tree), reply in zip(keys.items(), replies, strict=False):
        if isinstance(reply, DamagedRecord):
            damaged.append((tree.tree, unreadable(reply)))
            continue
        for name in reply:
            if (member := read(tree, name)) is not None:
                due.append(member)
            else:
                problem = f"{show_bytes(name)} is not a {kind} of this tree"
                damaged.append((tree.tree, Unreadable(what=key, problem=problem)))
    later = [
        (member, float(score) - now_s)
        for tree, reply in zip(keys.values(), replies[len(keys) :], strict=True)
        if not isinstance(reply, DamagedRecord)
        for name, score in zip(reply[::2], reply[1::2], strict=True)
        if (member := read(tree, name)) is not None
    ]
    return due, later, damaged


def _due_too_late(scored: list[tuple[ProcessKeys, float]]) -> Operation[list[ProcessKeys]]:
    """Return those of these processes, with the seconds until their next check, for which that is too long:
    longer than two leases, two pauses between wake-ups, or the seconds of a wait."""
    records = yield from replies_or_damage([_CHECKED.read(each.record) for each, _ in scored])
    longest_s = {"running": 2 * LEASE_S, "ready": 2 * WAKE_AGAIN_S * 2**MAX_DOUBLINGS}
    found = []
    for (member, left_s), record in zip(scored, records, strict=True):
        checked = _CHECKED.decode_readable(record)  # unreadable, which is nothing to act on
        wait_s = math.inf if checked.wait_s is None else checked.wait_s
        if left_s > (wait_s if checked.state == "waiting" else longest_s.get(checked.state, math.inf)):
            found.append(member)
    return found


_CHECKED = PROCESS.some("state", "wait_s")


class LossDetector:
    """Decide when an expired lease counts as lost: after its holder has had time to renew it.

    No holder can renew while Redis is down, stopped or unreachable; and after its clock was set, or this
    machine was suspended, a lease looks older than it is. Each of these shows as a gap in the observed
    Redis time. After a gap holders get half a lease more to renew; they retry at least every
    `RENEW_EVERY_S`. Gaps of up to half a lease are harmless: a lease that is being renewed has more than that
    left when the gap begins.

    `seen` is the last Redis time that was observed, `since` the end of the last gap.
    """

    def __init__(self, seen: float = -math.inf, since: float = -math.inf) -> None:
        self.seen = seen
        self.since = since

    def look(self, now: float) -> float:
        """Record the Redis time `now`. Return in how many seconds leases may be judged; 0.0 is now."""
        if not 0 <= now - self.seen <= LEASE_S / 2 or self.since > now:
            self.since = now
        self.seen = now
        return max(0.0, self.since + LEASE_S / 2 - now)


def observed_key(prefix: str) -> str:
    return f"{prefix}:sweeper:observed"


class _Observed(msgspec.Struct, frozen=True):
    seen: Moment | None = None
    since: Moment | None = None


_OBSERVED = Hash(_Observed)


class Observation(msgspec.Struct, frozen=True):
    """The Redis time, and in how many seconds leases may be judged."""

    now: float
    left_s: float


def observe(prefix: str) -> Operation[Observation]:
    """Observe the Redis time, for all sweepers together. Two round trips.

    What was observed is in Redis: a sweeper that was started just now need not wait to judge leases, if
    another one observed before. Concurrent observations can only overwrite each other with older ones, which
    looks like a gap.
    """
    key = observed_key(prefix)
    [time, fields] = yield from replies_or_damage([("TIME",), _OBSERVED.read(key)])
    now = seconds_of(time)
    detector = LossDetector()
    known = _OBSERVED.decode_readable(fields)
    if known.seen is not None and known.since is not None:
        detector = LossDetector(known.seen, known.since)
    left_s = detector.look(now)
    yield [
        ("UNLINK", key),
        though_full(
            ("HSET", key, "seen", f"{detector.seen:.6f}", "since", f"{detector.since:.6f}"), OBSERVED_S
        ),
    ]
    return Observation(now, left_s)
