"""Claim a process for a worker, renew its lease, and return it to the queue.

When a lease expires, other workers claim the process and a loss is counted. So a thread of its own renews
the lease, which the agent's work cannot delay, and a worker that stops returns its processes to the queue. A
claim whose reply was lost is repeated: a claimed process that its worker does not know of would expire too.

These threads also look every `POLL_S` whether a process was cancelled or taken over, so that a request to a
model ends at once, and not when the lease is renewed next or when the model answers. One
thread checks all leases of the program in one round trip: a check by each thread took a sixth of the
processor of a worker whose 200 agents waited for a model.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakKeyDictionary

from fdstore.agents.runtime.periodic import run_periodically
from fdstore.agents.runtime.store_wait import WaitLog
from fdstore.client import Store
from fdstore.errors import (
    STORE_FAILURES,
    FDStoreError,
    Fenced,
    NotFound,
    UnknownOutcome,
)
from fdstore.store.keys import ProcessKeys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import leases

log = logging.getLogger("fdstore.agent")

_renewals = WaitLog(log, "leases cannot be renewed")

POLL_S = 0.5
"""The interval at which waiting code checks whether the worker stops, and whether the lease is still held."""

WATCH_S = 0.1
"""The time that watched work goes on after its lease was lost."""

STOP_GRACE_S = 20.0
"""The time that the current step may continue after the worker was asked to stop. A model's answer or a
user's tool may take minutes; after this time the request is ended, and the result of a tool discarded."""


class Flag(Protocol):
    """Shutdown flag of a worker: a `threading.Event`, or an object that works across a fork."""

    def is_set(self) -> bool: ...


class WorkerStopping(Exception):
    """The worker stops; its process must be returned to the queue."""


def claim_process(
    store: Store,
    keys: ProcessKeys,
    worker: str,
    claim_id: str,
    *,
    only: leases.Kind | None,
    with_others: bool,
    again_until: Flag | None,
) -> leases.Claim | leases.ClaimRefusal | None:
    """Claim the process. If the claim's reply is lost, repeat it until a reply arrives or `again_until` is
    set; without `again_until` raise `UnknownOutcome`."""
    while True:
        try:
            return store.run(leases.claim(keys, worker, claim_id, only=only, with_others=with_others))
        except UnknownOutcome as error:
            if again_until is None or again_until.is_set():
                raise
            log.warning("%s may have been claimed: %s", keys.process, error)
            time.sleep(POLL_S)


class _HeldLeases:
    """The leases that this program holds of one store."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lost: dict[ProcessHandle, threading.Event] = {}
        self._looked_at = -math.inf

    @contextmanager
    def including(self, handle: ProcessHandle, lost: threading.Event) -> Iterator[None]:
        """Include a lease while the block runs; `lost` is set if it is no longer held."""
        with self._lock:
            self._lost[handle] = lost
        try:
            yield
        finally:
            with self._lock:
                del self._lost[handle]

    def look(self, store: Store) -> None:
        """Find the leases that are no longer held, unless a thread did so less than `POLL_S` ago."""
        with self._lock:
            now = time.monotonic()
            if now < self._looked_at + POLL_S * 0.9:  # threads do not wake up exactly on time
                return
            self._looked_at = now
            lost = dict(self._lost)
        for handle in store.run(leases.not_held(list(lost))):
            lost[handle].set()


_held: WeakKeyDictionary[Store, _HeldLeases] = WeakKeyDictionary()


class Lease:
    """The lease of one process, renewed by a background thread.

    `lost` is set within about `POLL_S` of a cancellation or a takeover, and `when_lost` called. If the
    worker stops and the current step outlasts `STOP_GRACE_S`, the thread returns the process to the queue:
    another worker continues it, and this attempt writes nothing more.
    """

    def __init__(
        self,
        store: Store,
        handle: ProcessHandle,
        stop: Flag,
        wake: Callable[[str], None],
        when_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._handle = handle
        self._held = _held.setdefault(store, _HeldLeases())
        self._stop = stop
        self._wake = wake
        self._when_lost = when_lost
        self._renew_at = time.monotonic() + leases.RENEW_EVERY_S
        self._release_at: float | None = None
        self.lost = threading.Event()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Renew the lease while the block runs."""
        every_s = min(POLL_S, leases.RENEW_EVERY_S)
        with (
            self._held.including(self._handle, self.lost),
            run_periodically(every_s, self._renew, f"lease {self._handle.id}"),
        ):
            yield

    @contextmanager
    def watched(self, end: Callable[[], None]) -> Iterator[None]:
        """Call `end` when the lease is lost during the block: for work that checks nothing itself."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(WATCH_S):
                if self.lost.is_set():
                    end()
                    return

        thread = threading.Thread(target=watch, name=f"watch {self._handle.id}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the loss of the lease, for up to `timeout` seconds. Return whether it is lost, or the
        worker stops: work that waits so is given up then."""
        return self.lost.wait(timeout) or self._stop.is_set()

    def check_held(self) -> None:
        """Raise `Fenced` if the lease is lost."""
        if self.lost.is_set():
            raise Fenced(self._handle.id, "its lease was lost")

    def check(self) -> None:
        """Raise `Fenced` if the lease is lost, `WorkerStopping` if the worker stops."""
        self.check_held()
        if self._stop.is_set():
            raise WorkerStopping

    def pause(self, seconds: float) -> None:
        """Sleep for `seconds`. Raises as `check` does, within `POLL_S` of the cause."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.lost.wait(min(left, POLL_S))
            self.check()

    def release_claim(self, *, has_begun: bool = True) -> None:
        """Return the process to the queue and wake another worker."""
        self._store.run(leases.return_to_queue(self._handle, has_begun=has_begun))
        self._wake(self._handle.id)

    def release_claim_later(self, in_vain: int | None = None, trouble: str = "") -> None:
        """Return the process to the queue, retrying until the store accepts, so that an outage does not count
        as a loss; a worker that stops tries once, since Redis takes this one when it takes no texts. Send no
        wake-up: the sweeper sends one later, when the store is more likely to have recovered. `in_vain` and
        `trouble` as for `leases.return_to_queue`. Raises as `check` does."""
        while True:
            self.check_held()
            try:
                self._store.run(leases.return_to_queue(self._handle, in_vain, trouble))
                return
            except STORE_FAILURES:
                self.check()
                self.lost.wait(POLL_S)

    def _renew(self) -> bool:
        now = time.monotonic()
        is_due = now >= self._renew_at
        if self._release_at is None and self._stop.is_set():
            self._release_at = now + STOP_GRACE_S
        try:
            if self._release_at is not None and now >= self._release_at:
                self._store.run(leases.return_to_queue(self._handle))
                self.lost.set()
                self._wake(self._handle.id)
            elif is_due:
                self._renew_at = now + leases.RENEW_EVERY_S
                self._store.run(leases.renew(self._handle))
                _renewals.goes_on()
            else:
                self._held.look(self._store)
        except (Fenced, NotFound):
            self.lost.set()
        except FDStoreError as error:
            # the store may recover before the lease expires; if not, the next try is fenced
            if is_due:
                _renewals.waits(error)
        if not self.lost.is_set():
            return True
        self._when_lost()
        return False
