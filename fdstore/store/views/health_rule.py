"""The rule by which a store and its workers are healthy, as facts to findings. No I/O and no clock.

    problem   people should look now: work stands still, or is about to
    note      work goes on; look when there is time
    ok        the figure itself, for those who want to see it

The strip of the inspector, its Health page, `fdstore status`, `top` and `doctor` all show what `judge`
returns, so that none of them says that all is well while another one knows better. `health` reads the facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fdstore.model.people import AskingProcess
from fdstore.model.records import Record
from fdstore.store.doctor.safety import Finding, note, problem, well
from fdstore.text.quantities import duration, format_count, format_size, moment
from fdstore.wire.server_info import NEARLY_FULL

PATIENCE_S = 60.0
"""Seconds. Health reports a process that waits longer for a worker, and a sweep that is older."""

BUSY_PATIENCE_S = 600.0
"""The same while every slot is busy: more workers are needed, but work goes on."""

VANISHED_S = 3600.0
"""The time for which a vanished worker is a problem; then it is a note until it is forgotten."""

FILLING = 0.8
"""The part of maxmemory above which memory is a note."""

MANY_FAILURES = 20
MANY_LOSSES = 4
"""Within an hour: a problem. Fewer are a note."""

MAX_NAMED = 3

Level = Literal["ok", "note", "problem"]


class WorkerSigns(Record, frozen=True, kw_only=True):
    """A registered worker: when it was last seen and until when its heartbeat counts; its slots, how many of
    them are busy and how many of those are held by lost calls; how many processes it held; since when it is
    registered. None: it does not say."""

    name: str
    seen_at: float
    alive_until: float
    slots: int | None = None
    busy: int | None = None
    lost: int | None = None
    holds: int = 0
    since: float | None = None


class HealthFacts(Record, frozen=True, kw_only=True):
    """A store at the Redis time `now_s`. `waiting` counts the processes that wait for a worker, those
    whose lease has lapsed too; `failures` and `losses` are those of the last hour; `refuses` says why Redis
    takes no writes ("" if it does). None is not known, as before the first sweep."""

    now_s: float
    workers: tuple[WorkerSigns, ...] = ()
    sweeper: str | None = None
    sweep_lag_s: float | None = None
    waiting: int = 0
    oldest_wait_s: float = 0.0
    failures: int | None = None
    losses: int | None = None
    used_memory_bytes: int = 0
    max_memory_bytes: int = 0
    refuses: str = ""

    @property
    def alive(self) -> list[WorkerSigns]:
        """The workers whose heartbeat counts."""
        return [each for each in self.workers if self.now_s <= each.alive_until]

    @property
    def vanished(self) -> list[WorkerSigns]:
        """The workers that did not unregister, and whose heartbeat does not count, the last one first."""
        gone = [each for each in self.workers if each.alive_until < self.now_s]
        return sorted(gone, key=lambda each: each.alive_until, reverse=True)


def judge(facts: HealthFacts) -> list[Finding]:
    """Return what these facts mean: problems first, then notes, then what is well.

    >>> [finding] = [each for each in judge(HealthFacts(now_s=0.0, waiting=2)) if not each.ok]
    >>> finding.said
    'none is alive, and 2 processes wait for one'
    """
    found = [
        _workers(facts),
        *_lost_calls(facts),
        *_vanished(facts),
        *_queue(facts),
        *_sweep(facts),
        *_memory(facts),
        *_writes(facts),
        *_troubles(facts),
    ]
    return sorted(found, key=lambda each: (each.ok, not each.note))


def level_of(findings: Sequence[Finding]) -> Level:
    """Return the worst level of some findings."""
    if not all(each.ok for each in findings):
        return "problem"
    return "note" if any(each.note for each in findings) else "ok"


def summary(findings: Sequence[Finding]) -> str:
    """Return findings in one line: the problems, else the notes, else all figures.

    >>> summary(judge(HealthFacts(now_s=0.0, waiting=2)))
    '1 problem: workers: none is alive, and 2 processes wait for one'
    """
    for kind, chosen in (
        ("problem", [each for each in findings if not each.ok]),
        ("note", [each for each in findings if each.ok and each.note]),
    ):
        if chosen:
            named = "; ".join(f"{each.subject}: {each.said}" for each in chosen)
            return f"{format_count(len(chosen), kind)}: {named}"
    return "well: " + "; ".join(f"{each.subject}: {each.said}" for each in findings)


def _workers(facts: HealthFacts) -> Finding:
    alive = facts.alive
    if not alive:
        waiting = ""
        if facts.waiting:
            waits = "waits" if facts.waiting == 1 else "wait"
            waiting = f", and {format_count(facts.waiting, 'process', 'processes')} {waits} for one"
        return Finding(
            subject="workers",
            ok=not facts.waiting,
            note=not facts.waiting,
            said=f"none is alive{waiting}",
            advice="start one: `fdstore up`, or `fdstore worker`",
        )
    said = f"{len(alive)} {'is' if len(alive) == 1 else 'are'} alive"
    told = [each for each in alive if each.slots is not None]
    if told:
        busy, slots = (sum(count or 0 for count in column) for column in _columns(told))
        said += f", {busy} of {format_count(slots, 'slot')} busy"
    return well("workers", said)


def _columns(workers: list[WorkerSigns]) -> tuple[list[int | None], list[int | None]]:
    return [each.busy for each in workers], [each.slots for each in workers]


def _lost_calls(facts: HealthFacts) -> list[Finding]:
    found = []
    for each in facts.alive:
        if not each.lost:
            continue
        stands_still = each.slots is not None and each.lost >= each.slots
        slots = format_count(each.slots or 0, "slot")
        held = "is held by a call" if each.lost == 1 else "are held by calls"
        said = f"{each.name}: {each.lost} of {slots} {held} that it lost and that does not end"
        said = said if each.lost == 1 else said.replace("does not end", "do not end")
        found.append(
            Finding(
                subject="lost calls",
                ok=not stands_still,
                note=not stands_still,
                said=said + (", so it claims nothing" if stands_still else ""),
                advice="it replaces its process after a minute; if it does not, restart it",
            )
        )
    return found


def _vanished(facts: HealthFacts) -> list[Finding]:
    gone = facts.vanished
    recent = [each for each in gone if facts.now_s - each.alive_until < VANISHED_S]
    advice = "it did not shut down: its machine, its container or its log says what ended it"
    if recent:
        return [problem("vanished workers", _not_seen(recent, facts), advice)]
    if gone:
        said = _not_seen(gone, facts)
        return [note("vanished workers", said, advice)]
    return []


def _not_seen(gone: list[WorkerSigns], facts: HealthFacts) -> str:
    named = [
        f"{each.name} not seen since {moment(each.seen_at)}, {duration(facts.now_s - each.seen_at)} ago"
        + (f", when it held {format_count(each.holds, 'process', 'processes')}" if each.holds else "")
        for each in gone[:MAX_NAMED]
    ]
    more = [f"and {len(gone) - MAX_NAMED} more"] if len(gone) > MAX_NAMED else []
    return "; ".join(named + more)


def _queue(facts: HealthFacts) -> list[Finding]:
    if not facts.alive:
        return []
    if not facts.waiting:
        return [well("queue", "no process waits for a worker")]
    waits = "waits" if facts.waiting == 1 else "wait"
    count = format_count(facts.waiting, "process", "processes")
    said = f"{count} {waits} for a worker, the oldest for {duration(facts.oldest_wait_s)}"
    told = [each for each in facts.alive if each.slots is not None and each.busy is not None]
    is_busy = len(told) == len(facts.alive) and all((each.busy or 0) >= (each.slots or 0) for each in told)
    late = facts.oldest_wait_s > PATIENCE_S
    ok = not late or (is_busy and facts.oldest_wait_s <= BUSY_PATIENCE_S)
    if is_busy:
        return [
            Finding(
                subject="queue",
                ok=ok,
                note=ok,
                said=f"{said}, and all slots are busy",
                advice="start more workers, or raise --concurrency",
            )
        ]
    advice = "`fdstore ps` says why it waits; else look at the logs of the workers"
    return [Finding(subject="queue", ok=ok, said=said, advice="" if ok else advice)]


def _sweep(facts: HealthFacts) -> list[Finding]:
    if not facts.alive:
        return []
    advice = "look at their logs; lost processes are not taken over until one sweeps"
    sweeper = facts.sweeper
    # a worker begins to sweep some seconds after its start, unless another one did: until then all is well
    ages_s = [facts.now_s - each.since for each in facts.alive if each.since is not None]
    lags_s = [each for each in (facts.sweep_lag_s, max(ages_s, default=None)) if each is not None]
    lag_s = min(lags_s, default=None)
    said = f"{sweeper} sweeps" if sweeper else "no worker sweeps"
    if lag_s is not None and lag_s > PATIENCE_S:
        said += f", and no sweep has ended for {duration(lag_s)}"
        return [problem("sweep", said, advice)]
    if facts.sweep_lag_s is None and sweeper is None:
        said = "no worker has swept yet"
        return [note("sweep", said, advice)]
    return [well("sweep", said)]


def _memory(facts: HealthFacts) -> list[Finding]:
    used, most = format_size(facts.used_memory_bytes), format_size(facts.max_memory_bytes)
    if not facts.max_memory_bytes:
        return [well("memory", f"{used} is used, without a limit")] if facts.used_memory_bytes else []
    part = facts.used_memory_bytes / facts.max_memory_bytes
    said = f"{used} of {most} is used"
    advice = "remove trees (`fdstore rm --tree`, `fdstore gc`) or raise maxmemory: once full, writes fail"
    if part >= 1:
        return [problem("memory", f"full: {said}, so writes fail", advice)]
    if part >= NEARLY_FULL:
        return [problem("memory", f"nearly full: {said}", advice)]
    return [Finding(subject="memory", ok=True, note=part >= FILLING, said=said, advice=advice)]


def _writes(facts: HealthFacts) -> list[Finding]:
    if not facts.refuses:
        return []
    return [problem("writes", f"Redis takes none: {facts.refuses}", "`fdstore doctor` says what to do")]


def _troubles(facts: HealthFacts) -> list[Finding]:
    found = []
    if (failures := facts.failures) is not None:
        count = format_count(failures, "process", "processes") if failures else "no process"
        advice = "`fdstore ps --all --state failed` shows their reasons" if failures else ""
        said = f"{count} failed in the last hour"
        found.append(_counted("failures", failures, MANY_FAILURES, said, advice))
    if (losses := facts.losses) is not None:
        count = format_count(losses, "time") if losses else "at no time"
        advice = "`fdstore top --sort losses` shows which; look for what ends the workers" if losses else ""
        said = f"{count} in the last hour a process lost its worker"
        found.append(_counted("losses", losses, MANY_LOSSES, said, advice))
    return found


def people_finding(asking: Sequence[AskingProcess]) -> list[Finding]:
    """Return the note about processes that wait for people; none if none does.

    >>> [found] = people_finding([AskingProcess(process="triage.1", questions=2)])
    >>> found.said
    '2 questions wait for a person: 2 of triage.1'
    """
    if not asking:
        return []
    count = sum(each.questions for each in asking)
    named = [f"{each.questions} of {each.process}" for each in asking[:MAX_NAMED]]
    if len(asking) > MAX_NAMED:
        named.append(f"and {format_count(len(asking) - MAX_NAMED, 'more process', 'more processes')}")
    waits = "waits" if count == 1 else "wait"
    said = f"{format_count(count, 'question')} {waits} for a person: {', '.join(named)}"
    return [note("people", said, "`fdstore questions` shows them, and how to answer")]


def _counted(subject: str, count: int, many: int, said: str, advice: str) -> Finding:
    return Finding(subject=subject, ok=count < many, note=0 < count < many, said=said, advice=advice)
