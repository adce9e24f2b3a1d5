"""The sweep: find and repair abandoned state in the store.

    a process with an expired lease     its worker died: make it ready again
    a ready process without a claim     its wake-up was lost: send it again
    a stream whose writer is lost       break it (writer_lost), for later readers
    a tree past its retention           collect it
    a content that nobody reads         move it to the object store, in a thread of its own (cold_mover)
    a Redis with unsafe settings        start nothing there until they are corrected
    an unreadable record                skip it with a line in the log, and sweep the other trees

Every worker has a sweeper; the holder of the key `sweeper` is active, the others stand by. Every step is
idempotent, so two active sweepers do no harm.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from fdstore.agents.loop.program_loader import Bundle
from fdstore.agents.runtime.store_wait import WaitLog
from fdstore.client import Store
from fdstore.errors import (
    SKIPPABLE,
    DamagedRecord,
    FDStoreError,
    Fenced,
    InvalidProgram,
    NewerFormat,
    NotFound,
    StoreUnavailable,
    TreeOutOfReach,
    UnknownOutcome,
)
from fdstore.model.records import TreeLimits, Unreadable
from fdstore.setup.logs import facts
from fdstore.store import tree_facts
from fdstore.store.clock import redis_now
from fdstore.store.doctor.check import check_server
from fdstore.store.keys import ProcessKeys, member_of
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import leases, process_records, processes
from fdstore.store.processes.process_records import TreeHoldings
from fdstore.store.record_format import show_bytes
from fdstore.store.streams import due_streams
from fdstore.store.trees import collect_trees
from fdstore.store.views import gauges, worker_registry
from fdstore.store.views.worker_registry import WorkerLoad
from fdstore.telemetry.counts import count
from fdstore.wire.operation import Operation
from fdstore_workers.cold_mover import ColdMover

log = logging.getLogger("fdstore.sweeper")

SWEEPER_S = 4.0
"""The time that the active sweeper holds its key. A little longer than the pause between sweeps: after the
sweeper was killed, no worker sweeps until the key expires."""

SWEEPS_FOR_S = 15.0
"""For how long after the begin of a round the worker counts as the one that sweeps: that of several
rounds."""

COLLECT_EVERY_S = 60.0

MAX_REPORTS = 1000
REPORT_AGAIN_S = 600.0
"""The interval between log lines about the same damaged record."""

REMEMBER_S = 60.0
"""The time for which finished trees are skipped. The limit is for a tree that is collected and recreated
between two sweeps."""

Report = Callable[..., None]
"""Called with the name of a skipped record, the problem, and an exception if its traceback is useful."""


def fail_process(keys: ProcessKeys, attempt: int, reason: str) -> Operation[tuple[str, ...]]:
    """Fail a process and return the ancestors that need a wake-up."""
    handle = ProcessHandle(keys, TreeLimits(), attempt)
    return (yield from processes.end(handle, "failed", exit_code=None, reason=reason, release=False))


def losses_allowed(keys: ProcessKeys) -> Operation[int]:
    """Return how many workers a process may crash, from the limits of its program: of a lane of asks from
    those of the process that asks."""
    fields = ("program", "bundle", "kind", "parent")
    [(program, digest, kind, parent)] = yield [("HMGET", keys.record, *fields)]
    if kind == b"asks" and (asking := member_of(keys.tree, parent or b"")) is not None:
        [(program, digest)] = yield [("HMGET", asking.record, *fields[:2])]
    if digest is None:
        return leases.MAX_LOSSES
    try:
        [bundle] = yield [("HGET", keys.tree.programs, digest)]
        if bundle is None:
            return leases.MAX_LOSSES
        return Bundle.from_json(bundle).programs[show_bytes(program or b"")].limits.max_losses
    except (InvalidProgram, NewerFormat, DamagedRecord, KeyError):
        return leases.MAX_LOSSES  # its next attempt reports the problem


class DamageLog:
    """Log skipped records, each at most once per `REPORT_AGAIN_S`."""

    def __init__(self) -> None:
        self._silent_until: dict[str, float] = {}

    def __call__(self, what: str, problem: str, trace: BaseException | None = None) -> None:
        now = time.monotonic()
        if now < self._silent_until.get(what, now):
            return
        if len(self._silent_until) >= MAX_REPORTS:  # bounds the log and this table
            self._silent_until = {name: until for name, until in self._silent_until.items() if now < until}
            if len(self._silent_until) >= MAX_REPORTS:
                return
        self._silent_until[what] = now + REPORT_AGAIN_S
        log.warning("%s is skipped: %s", what, problem, exc_info=trace)


def carry_out(
    store: Store, wake: Callable[[str], None], keys: ProcessKeys, lapsed: leases.LapseDecision
) -> None:
    """Carry out the decision about a lapsed process. Raises `Fenced`, `NotFound`."""
    if lapsed.is_loss:
        count("fdstore_process_losses_total")
    if lapsed.decision == "wake":
        log.info("%s is queued again", keys.process, extra=facts(process=keys.process))
        wake(keys.process)
    elif lapsed.attempt is not None and lapsed.reason is not None:
        reason = lapsed.reason.name
        fields = facts(process=keys.process, attempt=lapsed.attempt, state="failed", reason=reason)
        log.warning("%s failed: %s", keys.process, reason, extra=fields)
        for ancestor in store.run(fail_process(keys, lapsed.attempt, reason)):
            wake(ancestor)


class Swept(msgspec.Struct, frozen=True):
    """The number of processes that were due, and the usage of all trees."""

    processes: int
    usage: list[TreeHoldings]


def sweep(
    store: Store,
    wake: Callable[[str], None],
    now: float | None = None,
    over: dict[str, TreeHoldings] | None = None,
    report: Report | None = None,
    moved: Callable[[], None] = lambda: None,
) -> Swept:
    """Sweep every process and stream that is due at `now` (Redis time).

    Skips the trees in `over` and adds the finished ones to it. Damaged records go to `report`; the rest
    is swept. Calls `moved` before each process.
    """
    if now is None:
        now = store.run(redis_now())
    over = {} if over is None else over
    report = report or DamageLog()
    damaged: list[Unreadable] = []
    trees = [tree for tree in store.run(tree_facts.tree_names(store.prefix, damaged)) if tree not in over]
    found = store.run(leases.find_due(store.prefix, trees, now))
    for keys in found.processes:
        moved()
        with _one_tree(keys.tree.tree, report):
            lapsed = store.run(leases.check_overdue(keys, store.run(losses_allowed(keys)), now))
            carry_out(store, wake, keys, lapsed)
    open_streams = store.run(due_streams.find_due(store.prefix, trees, now))
    for tree, content in open_streams.streams:
        with _one_tree(tree.tree, report):
            store.run(due_streams.check_writer(tree, content))
    ended = store.run(process_records.finished_trees(store.prefix, trees))
    usage = [*over.values(), *ended.usage.values()]
    over.update({tree: ended.usage[tree] for tree in ended.trees if tree in ended.usage})
    for name, each in (*found.unreadable, *open_streams.unreadable, *ended.unreadable):
        report(each.what, f"{each.problem} (tree {name})")
    for each in damaged:
        report(each.what, each.problem)
    return Swept(len(found.processes), usage)


@contextmanager
def _one_tree(tree: str, report: Report) -> Iterator[None]:
    """Report errors of one tree and continue. Failures of the store end the sweep."""
    try:
        yield
    except (Fenced, NotFound):
        pass  # it ended meanwhile
    except SKIPPABLE as error:
        report(f"a record of tree {tree}", str(error))
    except FDStoreError:
        raise
    except Exception as error:  # noqa: BLE001 - a defect triggered by one tree must not stop the others
        report(f"tree {tree}", f"{type(error).__name__}: {error}", error)


def collect_due(store: Store, report: Report | None = None, moved: Callable[[], None] = lambda: None) -> None:
    """Collect the trees past their retention."""
    report = report or DamageLog()
    unreached: list[TreeOutOfReach] = []
    due = store.run(collect_trees.due_trees(store.prefix))
    for tree in store.run(tree_facts.within_reach(due, unreached)):
        moved()
        with _one_tree(tree.tree, report):
            collected = store.run(collect_trees.collect_tree(tree))
            if collected.outcome == "gone":
                log.info("tree %s was collected", collected.tree)
    for each in unreached:
        report(each.what, each.problem)


class Sweeper:
    """A thread that sweeps and keeps this worker registered until it is stopped.

    The registration describes the sandbox (`commands`), why the worker runs no agents (`no_agents`) and what
    its operator allows (`permissions`); `load` returns what it is busy with, if that is known.
    """

    def __init__(
        self,
        store: Store,
        worker: str,
        wake: Callable[[str], None],
        commands: str = "",
        no_agents: str = "",
        permissions: str = "",
        load: Callable[[], WorkerLoad | None] = lambda: None,
    ) -> None:
        self._store = store
        self._worker = worker
        self._commands = commands
        self._no_agents = no_agents
        self._permissions = permissions
        self._load = load
        self._since: float | None = None
        self._wake = wake
        self._collect_at = self._forget_at = 0.0
        self._over: dict[str, TreeHoldings] = {}
        self.moved_at = time.monotonic()
        """The time at which the thread last did anything, of `time.monotonic`."""
        self._report = DamageLog()
        self._waiting = WaitLog(log, "the sweep failed")
        self._done = threading.Event()
        self._sweeps_until = 0.0
        self._cold_mover = ColdMover(store, lambda: time.monotonic() < self._sweeps_until, self._report)
        self._thread = threading.Thread(target=self._keep, name="sweeper", daemon=True)

    @property
    def is_running(self) -> bool:
        """Return whether its thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Register the worker, which is listed as soon as it says that it is ready, and start the thread."""
        with suppress(FDStoreError):  # the thread tries again, and reports it
            self._register(self._store.run(leases.observe(self._store.prefix)).now)
        self._thread.start()
        self._cold_mover.start()

    def stop(self) -> None:
        """Stop the threads and unregister the worker."""
        self._done.set()
        self._cold_mover.stop()
        if self._thread.ident is not None:  # the worker may end before it is ready
            self._thread.join()
        try:
            self._store.run(worker_registry.unregister_worker(self._store.prefix, self._worker))
        except FDStoreError as error:
            log.info("could not unregister this worker: %s", error)

    def _keep(self) -> None:
        pause_s = 0.0
        while not self._done.wait(pause_s):
            pause_s = leases.SWEEP_EVERY_S
            self._has_moved()
            try:
                pause_s = self._round()
                # the round itself goes on in a full Redis, and the log says that it is full
                self._store.run(worker_registry.check_takes_writes(self._store.prefix, self._worker))
                self._waiting.goes_on()
            except FDStoreError as error:
                self._waiting.waits(error)
            except Exception as error:  # noqa: BLE001 - without its thread nothing would be swept
                self._report("a round of the sweep", f"{type(error).__name__}: {error}", error)

    def _round(self) -> float:
        """Register this worker, sweep if it is the active sweeper, and return the pause in seconds."""
        observed = self._store.run(leases.observe(self._store.prefix))
        moment = observed.now
        self._register(moment)
        self._store.run(check_server(self._store.where))
        if observed.left_s > 0:
            return min(observed.left_s, leases.SWEEP_EVERY_S)
        if other_s := self._other_is_active_s():
            return min(other_s, leases.SWEEP_EVERY_S)
        self._sweeps_until = time.monotonic() + SWEEPS_FOR_S
        if time.monotonic() >= self._forget_at:
            self._forget_at = time.monotonic() + REMEMBER_S
            self._over.clear()
        started = time.monotonic()
        if started >= self._collect_at:  # first: in a full Redis it makes room for the rest
            self._collect_at = started + COLLECT_EVERY_S
            collect_due(self._store, self._report, self._has_moved)
        swept = sweep(self._store, self._wake, moment, self._over, self._report, self._has_moved)
        self._store_totals(swept, moment + time.monotonic() - started)
        self._store.run(leases.observe(self._store.prefix))  # else a long sweep would count as a gap
        return leases.SWEEP_EVERY_S

    def _store_totals(self, swept: Swept, swept_at: float) -> None:
        with self._without_its_node("the sums of all trees"):
            self._store.run(gauges.store_totals(self._store.prefix, swept.usage, swept_at))

    def _has_moved(self) -> None:
        self.moved_at = time.monotonic()

    def _register(self, moment: float) -> None:
        prefix, worker, load = self._store.prefix, self._worker, self._load()
        self._since = moment if self._since is None else min(self._since, moment)  # the clock may be set back
        with self._without_its_node("the registration of this worker"):
            self._store.run(
                worker_registry.register_worker(
                    *(prefix, worker, worker_registry.HEARTBEAT_S, moment),
                    *(self._commands, self._no_agents, self._permissions),
                    load=load and msgspec.structs.replace(load, since=self._since),
                )
            )

    def _other_is_active_s(self) -> float:
        """Return for how many seconds another worker has the right to sweep, 0.0 if this one has it."""
        with self._without_its_node("the key of the worker that sweeps"):
            return self._store.run(worker_registry.acquire_sweep(self._store.prefix, self._worker, SWEEPER_S))
        return 0.0  # two active sweepers do no harm

    @contextmanager
    def _without_its_node(self, what: str) -> Iterator[None]:
        """Report what cannot be read or reached, and continue: the trees are swept without it. In a Cluster
        it may be on a lost node; if no node answers, the round ends with its next request."""
        try:
            yield
        except DamagedRecord as error:
            self._report(error.what, error.problem)
        except (StoreUnavailable, UnknownOutcome) as error:
            self._report(what, str(error))
