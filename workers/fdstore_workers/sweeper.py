"""The sweep: finds what nobody else would ever look at again.

    a process whose lease ran out       its worker is gone: ready again, or failed after the third loss
    a ready process nobody claimed      its wake-up was lost: sent again
    a stream whose writer is gone       broken (writer_lost), for those who read it later
    a tree past its retention           collected
    a Redis that was made unsafe        nothing is run again in there until that is set right

Every worker has a sweeper; the one that holds `sweeper` works, the others stand by. All of it is
safe to do twice, so a sweeper that is slow does no harm.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from fdstore.agent.program import Bundle
from fdstore.client import Store
from fdstore.errors import FDStoreError, Fenced, InvalidProgram, NotFound
from fdstore.records import TreeLimits
from fdstore.store import collect, inspection, leases, processes, streams
from fdstore.store.check import check_server
from fdstore.store.keys import ProcessKeys
from fdstore.store.operation import Operation
from fdstore.store.scripts import text
from fdstore.store.views import Namespace

log = logging.getLogger("fdstore.sweeper")

SIGN_OF_LIFE_S = 10.0
"""How long a worker counts as alive after it last said so."""

SWEEPER_S = 5.0
"""How long the one sweeper is waited for when it says no more: shorter than a lease, so that a worker
that dies as the sweeper delays nothing."""

COLLECT_EVERY_S = 60.0

REMEMBER_S = 60.0
"""How long trees that are over are passed by. For ever would do, but for one that was collected and then
made anew between two sweeps."""


def given_up(keys: ProcessKeys, attempt: int, reason: str) -> Operation[str]:
    """Ends a process that is not to be run again; the parent to wake, or ""."""
    space = Namespace(keys, TreeLimits(), attempt)
    return (yield from processes.end(space, "failed", exit_code=None, reason=reason, release=False))


def losses_allowed(keys: ProcessKeys) -> Operation[int]:
    """How many losses are too many, as the program of the process says."""
    [(program, digest)] = yield [("HMGET", keys.record, "program", "bundle")]
    bundle = None
    if digest is not None:
        [bundle] = yield [("HGET", keys.tree.programs, digest)]
    if bundle is None:
        return leases.MAX_LOSSES
    try:
        return Bundle.from_json(bundle).programs[text(program)].limits.max_losses
    except (InvalidProgram, KeyError):
        return leases.MAX_LOSSES  # its next attempt will say what is wrong with it


def carry_out(store: Store, wake: Callable[[str], None], keys: ProcessKeys, lapsed: leases.Lapsed) -> None:
    """Do what a look at a process decided. Raises `Fenced`, `NotFound`."""
    if lapsed.decision == "wake":
        log.info("%s is to be run again", keys.process)
        wake(keys.process)
    elif lapsed.attempt is not None:
        reason = "poison" if lapsed.decision == "poison" else "worker_lost"
        log.warning("%s has failed: %s", keys.process, reason)
        parent = store.run(given_up(keys, lapsed.attempt, reason))
        if parent:
            wake(parent)


def sweep(
    store: Store, wake: Callable[[str], None], now: float | None = None, over: set[str] | None = None
) -> int:
    """Looks after every process that is due, or was at `now` by the clock of Redis; how many there were.
    Trees in `over` are passed by; those that are found to be over are put there."""
    if now is None:
        now = store.run(leases.redis_now())
    over = set() if over is None else over
    trees = [tree for tree in store.run(inspection.tree_names(store.prefix)) if tree not in over]
    found = store.run(leases.due(store.prefix, trees, now))
    for keys in found:
        try:
            lapsed = store.run(leases.look_after(keys, store.run(losses_allowed(keys)), now))
            carry_out(store, wake, keys, lapsed)
        except (Fenced, NotFound):
            continue  # it ended meanwhile
    for tree, content in store.run(streams.due(store.prefix, trees, now)):
        store.run(streams.look_after(tree, content))
    over.update(store.run(inspection.over(store.prefix, trees)))
    return len(found)


def collect_due(store: Store) -> None:
    """Collects the trees whose time has come."""
    for tree in store.run(collect.due_trees(store.prefix, time.time())):
        collected = store.run(collect.collect_tree(tree))
        if collected.outcome == "gone":
            log.info("tree %s was collected", collected.tree)


class Sweeper:
    """Sweeps from a thread until it is stopped; also this worker's sign of life, which says what
    `commands` run in here."""

    def __init__(self, store: Store, worker: str, wake: Callable[[str], None], commands: str = "") -> None:
        self._store = store
        self._worker = worker
        self._commands = commands
        self._wake = wake
        self._watch = leases.Watch()
        self._collect_at = self._forget_at = 0.0
        self._over: set[str] = set()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="sweeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread and takes the sign of life away."""
        self._done.set()
        if self._thread.ident is not None:  # the worker may have ended before it was ready
            self._thread.join()
        try:
            self._store.run(leases.gone(self._store.prefix, self._worker))
        except FDStoreError as error:
            log.info("the store was gone before this worker: %s", error)

    def _keep(self) -> None:
        pause_s = 0.0
        trouble = ""
        while not self._done.wait(pause_s):
            try:
                pause_s = self._round()
                trouble = ""
            except FDStoreError as error:
                if str(error) != trouble:
                    log.warning("the sweep was cut short: %s", error)
                trouble = str(error)
                pause_s = leases.SWEEP_EVERY_S

    def _round(self) -> float:
        """Says that this worker lives, and sweeps if it is the one; how long to pause then."""
        now = time.time()
        until = now + SIGN_OF_LIFE_S
        self._store.run(leases.alive(self._store.prefix, self._worker, until, now, self._commands))
        self._store.run(check_server(self._store.where))
        moment = self._store.run(leases.redis_now())
        left_s = self._watch.look(moment)
        if left_s > 0:
            return min(left_s, leases.SWEEP_EVERY_S)
        if self._store.run(leases.take_sweep(self._store.prefix, self._worker, SWEEPER_S)):
            if time.monotonic() >= self._forget_at:
                self._forget_at = time.monotonic() + REMEMBER_S
                self._over.clear()
            sweep(self._store, self._wake, moment, self._over)
            if time.monotonic() >= self._collect_at:
                self._collect_at = time.monotonic() + COLLECT_EVERY_S
                collect_due(self._store)
            self._watch.look(self._store.run(leases.redis_now()))
        return leases.SWEEP_EVERY_S
