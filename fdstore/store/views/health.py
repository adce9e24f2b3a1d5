"""The health of a store and its workers: the facts, read in a bounded number of requests, and what they mean.

The rule itself is `health_rule`, which reads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fdstore.errors import DamagedRecord, InvalidArgument, ObjectStoreUnavailable
from fdstore.store.doctor.safety import Finding, problem, well
from fdstore.store.objects.object_store import check_mounted, shown
from fdstore.store.objects.settings import read_settings
from fdstore.store.views.gauges import read_gauges
from fdstore.store.views.health_rule import HealthFacts, WorkerSigns, judge
from fdstore.store.views.worker_registry import LONGEST_S
from fdstore.store.views.workers_now import WorkerActivity, WorkersNow, workers_now
from fdstore.wire.operation import Disk, Operation

COLD = "cold contents"


def read_health(prefix: str) -> Operation[list[Finding]]:
    """Return the findings about a store and its workers, problems first. Seven round trips, if no record is
    damaged. Raises `StoreUnavailable`."""
    try:
        found = yield from workers_now(prefix, has_queue=False)
    except DamagedRecord as error:
        return [problem("workers", str(error), "rename or delete that key; workers make it again")]
    return judge((yield from health_facts(prefix, found)))


def health_facts(prefix: str, found: WorkersNow) -> Operation[HealthFacts]:
    """Return the facts about a store whose workers are known. Two round trips, if no record is damaged."""
    gauges = yield from read_gauges(prefix)
    since = [*(each.ready_at for each in found.ready), *(each.lease_until for each in found.lapsed)]
    waiting_s = [found.now_s - each for each in since if each is not None]
    return HealthFacts(
        now_s=found.now_s,
        # one that is registered for longer has registered before the clock was set back, and does so again
        workers=tuple(_signs(each) for each in found.workers if each.alive_until <= found.now_s + LONGEST_S),
        sweeper=found.sweeper,
        sweep_lag_s=gauges.sweep_lag_s,
        waiting=len(since),
        oldest_wait_s=max(0.0, *waiting_s) if waiting_s else 0.0,
        failures=gauges.failures,
        losses=gauges.losses,
        used_memory_bytes=gauges.used_memory_bytes,
        max_memory_bytes=gauges.max_memory_bytes,
        refuses=gauges.refuses,
    )


def _signs(worker: WorkerActivity) -> WorkerSigns:
    load = worker.load
    return WorkerSigns(
        name=worker.name,
        seen_at=worker.seen_at,
        alive_until=worker.alive_until,
        slots=None if load is None else load.slots,
        busy=None if load is None else load.busy,
        lost=None if load is None else load.lost,
        # what vanished with its worker may be another's by now
        holds=len(worker.jobs) if load is None else len(load.runs),
        since=load.since if load and load.since else None,
    )


def read_cold_place(prefix: str) -> Operation[list[Finding]]:
    """Return what this machine sees of the place of cold contents, nothing if there is none. A bucket is not
    asked. One round trip."""
    try:
        url = (yield from read_settings(prefix)).url
    except InvalidArgument as error:
        return [problem(COLD, str(error), "set it again: `fdstore limits set cold URL`")]
    if url is None:
        return []
    try:
        yield Disk(partial(check_mounted, url))
    except ObjectStoreUnavailable as error:
        return [problem(COLD, str(error), "mount it on each machine that reads or runs a worker")]
    return [well(COLD, f"in {shown(url)}")]


def beside(findings: Sequence[Finding], examined: Sequence[Finding]) -> list[Finding]:
    """Return the findings about subjects that `examined`, those of `fdstore doctor`, does not have."""
    subjects = {each.subject for each in examined}
    return [each for each in findings if each.subject not in subjects]
