"""The sweep: finds what nobody else would ever look at again.

    a process whose lease ran out       its worker is gone: ready again, or failed after the third loss
    a ready process nobody claimed      its wake-up was lost: sent again
    a stream whose writer is gone       broken (writer_lost), for those who read it later
    a tree past its retention           collected
    a Redis that was made unsafe        nothing is run again in there until that is set right
    a record that cannot be read        passed over with a line in the log; other trees are swept

Every worker has a sweeper; the one that holds `sweeper` works, the others stand by. All of it is
safe to do twice, so a sweeper that is slow does no harm.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fdstore import lifecycle
from fdstore.agent.program import Bundle
from fdstore.client import Store
from fdstore.errors import DamagedRecord, FDStoreError, Fenced, InvalidProgram, NewerFormat, NotFound
from fdstore.records import TreeLimits, Unreadable
from fdstore.store import collect, inspection, leases, processes, streams
from fdstore.store.check import check_server
from fdstore.store.clock import redis_now
from fdstore.store.content_info import ProcessHandle
from fdstore.store.decoding import PASSED_OVER, show_bytes
from fdstore.store.keys import ProcessKeys
from fdstore.wire.operation import Operation

log = logging.getLogger("fdstore.sweeper")

SIGN_OF_LIFE_S = 10.0
"""How long a worker counts as alive after it last said so."""

SWEEPER_S = 5.0
"""How long the one sweeper is waited for when it says no more: shorter than a lease, so that a worker
that dies as the sweeper delays nothing."""

COLLECT_EVERY_S = 60.0

MAX_REPORTS = 1000
REPORT_AGAIN_S = 600.0
"""After how long what is still damaged is logged again."""

REMEMBER_S = 60.0
"""How long trees that are over are passed by. For ever would do, but for one that was collected and then
made anew between two sweeps."""


Report = Callable[..., None]
"""Takes what is passed over, what is wrong with it, and the exception if its traceback is to be logged."""


def given_up(keys: ProcessKeys, attempt: int, reason: str) -> Operation[tuple[str, ...]]:
    """End a process that is not to be run again. Return the ancestors that need a wake-up."""
    handle = ProcessHandle(keys, TreeLimits(), attempt)
    return (yield from processes.end(handle, "failed", exit_code=None, reason=reason, release=False))


def losses_allowed(keys: ProcessKeys) -> Operation[int]:
    """How many losses are too many, as the program of the process says."""
    [(program, digest)] = yield [("HMGET", keys.record, "program", "bundle")]
    if digest is None:
        return leases.MAX_LOSSES
    try:
        [bundle] = yield [("HGET", keys.tree.programs, digest)]
        if bundle is None:
            return leases.MAX_LOSSES
        return Bundle.from_json(bundle).programs[show_bytes(program or b"")].limits.max_losses
    except (InvalidProgram, NewerFormat, DamagedRecord, KeyError):
        return leases.MAX_LOSSES  # its next attempt will say what is wrong with it


class Reported:
    """Log what is passed over: once each, and again when it is still so after a while."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}

    def __call__(self, what: str, problem: str, trace: BaseException | None = None) -> None:
        now = time.monotonic()
        if now < self._said.get(what, now):
            return
        if len(self._said) >= MAX_REPORTS:  # whatever Redis holds, the log stays readable
            self._said = {known: until for known, until in self._said.items() if now < until}
            if len(self._said) >= MAX_REPORTS:
                return
        self._said[what] = now + REPORT_AGAIN_S
        log.warning("%s is passed over: %s", what, problem, exc_info=trace)


def carry_out(store: Store, wake: Callable[[str], None], keys: ProcessKeys, lapsed: leases.Lapsed) -> None:
    """Do what a look at a process decided. Raises `Fenced`, `NotFound`."""
    if lapsed.decision == "wake":
        log.info("%s is to be run again", keys.process)
        wake(keys.process)
    elif lapsed.attempt is not None:
        reason = lifecycle.POISON if lapsed.decision == "poison" else lifecycle.WORKER_LOST
        log.warning("%s has failed: %s", keys.process, reason)
        for ancestor in store.run(given_up(keys, lapsed.attempt, reason)):
            wake(ancestor)


def sweep(
    store: Store,
    wake: Callable[[str], None],
    now: float | None = None,
    over: set[str] | None = None,
    report: Report | None = None,
) -> int:
    """Looks after every process that is due, or was at `now` by the clock of Redis; how many there were.
    Trees in `over` are passed by; those that are found to be over are put there. What is damaged goes to
    `report`, and keeps nothing else from being swept."""
    if now is None:
        now = store.run(redis_now())
    over = set() if over is None else over
    report = report or Reported()
    damaged: list[Unreadable] = []
    trees = [tree for tree in store.run(inspection.tree_names(store.prefix, damaged)) if tree not in over]
    found = store.run(leases.due(store.prefix, trees, now))
    for keys in found.processes:
        with _one_tree(keys.tree.tree, report):
            lapsed = store.run(leases.look_after(keys, store.run(losses_allowed(keys)), now))
            carry_out(store, wake, keys, lapsed)
    open_streams = store.run(streams.due(store.prefix, trees, now))
    for tree, content in open_streams.streams:
        with _one_tree(tree.tree, report):
            store.run(streams.look_after(tree, content))
    ended = store.run(inspection.finished_trees(store.prefix, trees))
    over.update(ended.trees)
    for name, each in (*found.unreadable, *open_streams.unreadable, *ended.unreadable):
        report(each.what, f"{each.problem} (tree {name})")
    for each in damaged:
        report(each.what, each.problem)
    return len(found.processes)


@contextmanager
def _one_tree(tree: str, report: Report) -> Iterator[None]:
    """Goes on after what is wrong with one tree. Trouble of the store ends the sweep."""
    try:
        yield
    except (Fenced, NotFound):
        pass  # it ended meanwhile
    except PASSED_OVER as error:
        report(f"a record of tree {tree}", str(error))
    except FDStoreError:
        raise
    except Exception as error:  # noqa: BLE001 - a defect that one tree brings out must not stop all others
        report(f"tree {tree}", f"{type(error).__name__}: {error}", error)


def collect_due(store: Store, report: Report | None = None) -> None:
    """Collects the trees whose time has come."""
    for tree in store.run(collect.due_trees(store.prefix)):
        with _one_tree(tree.tree, report or Reported()):
            collected = store.run(collect.collect_tree(tree))
            if collected.outcome == "gone":
                log.info("tree %s was collected", collected.tree)


class Sweeper:
    """Sweeps from a thread until it is stopped; also this worker's sign of life, which says what
    `commands` run in here, and why it takes no agents."""

    def __init__(
        self,
        store: Store,
        worker: str,
        wake: Callable[[str], None],
        commands: str = "",
        no_agents: str = "",
    ) -> None:
        self._store = store
        self._worker = worker
        self._commands = commands
        self._no_agents = no_agents
        self._wake = wake
        self._watch = leases.Watch()
        self._collect_at = self._forget_at = 0.0
        self._over: set[str] = set()
        self._report = Reported()
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
            self._store.run(leases.unregister_worker(self._store.prefix, self._worker))
        except FDStoreError as error:
            log.info("the store was gone before this worker: %s", error)

    def _keep(self) -> None:
        pause_s = 0.0
        trouble = ""
        while not self._done.wait(pause_s):
            pause_s = leases.SWEEP_EVERY_S
            try:
                pause_s = self._round()
                trouble = ""
            except FDStoreError as error:
                if str(error) != trouble:
                    log.warning("the sweep was cut short: %s", error)
                trouble = str(error)
            except Exception as error:  # noqa: BLE001 - nobody else would notice that nothing is swept any more
                self._report("a round of the sweep", f"{type(error).__name__}: {error}", error)

    def _round(self) -> float:
        """Says that this worker lives, and sweeps if it is the one; how long to pause then."""
        moment = self._store.run(redis_now())
        self._say_alive(moment)
        self._store.run(check_server(self._store.where))
        left_s = self._watch.look(moment)
        if left_s > 0:
            return min(left_s, leases.SWEEP_EVERY_S)
        if self._is_the_one():
            if time.monotonic() >= self._forget_at:
                self._forget_at = time.monotonic() + REMEMBER_S
                self._over.clear()
            sweep(self._store, self._wake, moment, self._over, self._report)
            if time.monotonic() >= self._collect_at:
                self._collect_at = time.monotonic() + COLLECT_EVERY_S
                collect_due(self._store, self._report)
            self._watch.look(self._store.run(redis_now()))
        return leases.SWEEP_EVERY_S

    def _say_alive(self, moment: float) -> None:
        prefix, worker = self._store.prefix, self._worker
        try:
            self._store.run(
                leases.register_worker(
                    prefix, worker, SIGN_OF_LIFE_S, moment, self._commands, self._no_agents
                )
            )
        except DamagedRecord as error:
            self._report(error.what, error.problem)

    def _is_the_one(self) -> bool:
        try:
            return self._store.run(leases.take_sweep(self._store.prefix, self._worker, SWEEPER_S))
        except DamagedRecord as error:
            self._report(error.what, error.problem)
            return True  # two that sweep do no harm
