"""The health of a worker, for probes: alive, ready.

    alive   the sweeper's thread and the loop that consumes messages moved lately: else restart the
            worker
    ready   it can claim work: the store answers and is safe, the worker has started and does not shut
            down, and not all of its slots are held by lost calls

An outage of the store or the queue makes a worker not ready, but does not make it dead: a restart would
not help. So the loop, which stands still while the queue's Redis cannot be reached, counts from when
that last failed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError

import msgspec

from fdstore.agents.runtime.claim import Flag
from fdstore.client import Store
from fdstore.errors import FDStoreError
from fdstore.store.views import gauges
from fdstore.store.views.gauges import QueueGauges, StoreGauges
from fdstore.store.views.worker_registry import WorkerLoad
from fdstore_workers.messages import ForeignMessage, process_of
from fdstore_workers.sweeper import Sweeper

STUCK_AFTER_S = 120.0
"""The time for which the sweeper or the loop may stand still. A round of the sweep in an outage takes half a
minute, a pause between two attempts to reach the queue as long."""

LOOP_BEAT_S = 2.0

PATIENCE_S = 2.0
"""The time that a request waits for the store. A slower answer is for later requests."""

FRESH_S = 1.0
"""The time for which an answer of the store is used again."""


class StoreState(msgspec.Struct, frozen=True):
    """The answers of the store and the queue; `problem` if the store did not answer."""

    problem: str = ""
    gauges: StoreGauges | None = None
    queue: QueueGauges = QueueGauges()


class StoreProbe:
    """Reads the state of the store and the queue on a thread of its own, so that no request waits for
    long."""

    def __init__(
        self, store: Store, queue: Store | None, moments: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._queue, self.moments = store, queue, moments
        self._pool = ThreadPoolExecutor(1, "store probe")
        self._lock = threading.Lock()
        self._reading: Future[StoreState] | None = None
        self._read_at = float("-inf")
        self.queue_failed_at = float("-inf")
        """The time at which the queue last did not answer."""

    def look(self) -> StoreState:
        """Return the current state. At most four round trips, at most once in `FRESH_S`; never waits for
        more than `PATIENCE_S`."""
        with self._lock:
            is_old = self._reading is None or (
                self._reading.done() and self.moments() - self._read_at > FRESH_S
            )
            if is_old:
                self._reading = self._pool.submit(self._read)
            reading = self._reading
        assert reading is not None
        try:
            return reading.result(PATIENCE_S)
        except FutureTimeoutError:
            self.queue_failed_at = self.moments()
            return StoreState(problem=f"the store did not answer within {PATIENCE_S:g} s")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _read(self) -> StoreState:
        try:
            found = self._store.run(gauges.read_gauges(self._store.prefix))
        except FDStoreError as error:
            self.queue_failed_at = self._read_at = self.moments()
            return StoreState(problem=f"{error.type}: {error}")
        queue = QueueGauges()
        try:
            if self._queue is not None:
                head = self._queue.run(gauges.read_queue(self._store.prefix))
                queue = QueueGauges(head.length)
                waiting = list(dict.fromkeys(filter(None, map(_process, head.oldest))))
                oldest_s = self._store.run(gauges.oldest_wait(self._store.prefix, waiting))
                queue = QueueGauges(head.length, oldest_s)
        except FDStoreError:
            self.queue_failed_at = self.moments()
        self._read_at = self.moments()
        return StoreState(gauges=found, queue=queue)


def _process(message: bytes) -> str:
    try:
        return process_of(message)
    except ForeignMessage:
        return ""


class WorkerHealth:
    """The signs of life of a worker. `load` returns what it is busy with, if that is known."""

    def __init__(
        self,
        sweeper: Sweeper,
        probe: StoreProbe,
        stopping: Flag,
        load: Callable[[], WorkerLoad | None] = lambda: None,
    ) -> None:
        self._sweeper, self._probe, self._stopping = sweeper, probe, stopping
        self.load = load
        self._has_started = False
        self._loop_moved_at: float | None = None

    def started(self) -> None:
        """Note that the worker consumes messages from now on."""
        self._has_started = True

    def loop_moved(self) -> None:
        """Note that the loop that consumes messages is alive. Call it every `LOOP_BEAT_S`."""
        self._loop_moved_at = self._probe.moments()

    def why_dead(self) -> str:
        """Return why the worker must be restarted; "" if it is alive."""
        if not self._has_started or self._stopping.is_set():
            return ""  # its start and its end have limits of their own
        now = self._probe.moments()
        if not self._sweeper.is_running:
            return "the thread of the sweeper has ended"
        if (still_s := now - self._sweeper.moved_at) > STUCK_AFTER_S:
            return f"the sweeper has not moved for {still_s:.0f} s"
        if self._loop_moved_at is not None:
            self._probe.look()  # a loop that cannot reach the queue stands still
            still_s = now - max(self._loop_moved_at, self._probe.queue_failed_at)
            if still_s > STUCK_AFTER_S:
                return f"the loop that consumes messages has not moved for {still_s:.0f} s"
        return ""

    def why_not_ready(self) -> str:
        """Return why the worker accepts no work; "" if it does."""
        if self._stopping.is_set():
            return "the worker shuts down"
        if not self._has_started:
            return "the worker starts"
        state = self._probe.look()
        if state.problem:
            return state.problem
        if state.gauges is not None and state.gauges.unsafe:
            return f"the store is not safe: {state.gauges.unsafe}"
        load = self.load()
        if load is not None and load.slots and load.lost >= load.slots:
            return f"all {load.slots} slots are held by calls that were lost and do not end"
        return self.why_dead()
