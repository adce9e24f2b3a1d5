"""The hold that a worker has on the process it runs: taken, kept, and given back.

Other workers take a process whose lease runs out, and count a loss. So the lease is kept by a thread that
the work cannot hold up, and a worker that has to stop gives its processes back in good order. What may
have been written and got no answer is asked again: a lease that nobody knows of would run out too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from fdstore.client import Store
from fdstore.errors import (
    STORE_FAILURES,
    FDStoreError,
    Fenced,
    NotFound,
    UnknownOutcome,
)
from fdstore.runtime.periodic import run_periodically
from fdstore.store import leases
from fdstore.store.content_info import ProcessHandle
from fdstore.store.keys import ProcessKeys

log = logging.getLogger("fdstore.agent")

LOOK_UP_EVERY_S = 0.5
"""How often who waits looks whether the worker stops."""

STOP_GRACE_S = 20.0
"""How long a step may go on when the worker stops. A model's answer or a user's tool may take minutes,
and cannot be ended from outside; what it comes to is then not written by this attempt."""


class Flag(Protocol):
    """What says that the worker stops: a `threading.Event`, or something that crosses a fork."""

    def is_set(self) -> bool: ...


class Stopped(Exception):
    """The worker stops: the process is to go back."""


def hold_lease(
    store: Store,
    keys: ProcessKeys,
    worker: str,
    claim_id: str,
    *,
    only: leases.Kind | None,
    with_others: bool,
    again_until: Flag | None,
) -> leases.Claim | leases.LeftAlone | None:
    """Take the process. A worker whose claim got no answer asks until it has one, or stops."""
    while True:
        try:
            return store.run(leases.claim(keys, worker, claim_id, only=only, with_others=with_others))
        except UnknownOutcome as error:
            if again_until is None or again_until.is_set():
                raise
            log.warning("%s may have been taken: %s", keys.process, error)
            time.sleep(LOOK_UP_EVERY_S)


class Lease:
    """Keeps the lease of a process from a thread that the work cannot hold up.

    When the worker stops and the step in hand takes too long, it gives the process back from there:
    another worker goes on with it, and this attempt writes nothing more.
    """

    def __init__(self, store: Store, handle: ProcessHandle, stop: Flag, wake: Callable[[str], None]) -> None:
        self._store = store
        self._handle = handle
        self._stop = stop
        self._wake = wake
        self._renew_at = time.monotonic() + leases.RENEW_EVERY_S
        self._leave_at: float | None = None
        self.lost = threading.Event()

    def kept(self) -> AbstractContextManager[None]:
        """The lease is kept while the block runs."""
        every_s = min(LOOK_UP_EVERY_S, leases.RENEW_EVERY_S)
        return run_periodically(every_s, self._keep, f"lease {self._handle.id}")

    def check(self) -> None:
        """Raises `Fenced` when the lease is lost, `Stopped` when the worker stops."""
        if self.lost.is_set():
            raise Fenced(self._handle.id, "its lease was lost")
        if self._stop.is_set():
            raise Stopped

    def pause(self, seconds: float) -> None:
        """Waits. Raises as `check`, as soon as there is reason."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.lost.wait(min(left, LOOK_UP_EVERY_S))
            self.check()

    def give_back(self, *, has_begun: bool = True) -> None:
        """Another worker is to go on with the process, now."""
        self._store.run(leases.give_back(self._handle, has_begun=has_begun))
        self._wake(self._handle.id)

    def give_back_later(self, in_vain: int | None = None) -> None:
        """Gives the process back once the store takes it, so that its trouble does not count as a loss.
        No wake-up: a moment later, when the sweep sends one, there is more hope. `in_vain` as for
        `leases.give_back`. Raises as `check`."""
        while True:
            self.check()
            try:
                self._store.run(leases.give_back(self._handle, in_vain))
                return
            except STORE_FAILURES:
                self.lost.wait(LOOK_UP_EVERY_S)

    def _keep(self) -> bool:
        now = time.monotonic()
        if self._leave_at is None and self._stop.is_set():
            self._leave_at = now + STOP_GRACE_S
        try:
            if self._leave_at is not None and now >= self._leave_at:
                self._store.run(leases.give_back(self._handle))
                self.lost.set()
                self._wake(self._handle.id)
            elif now >= self._renew_at:
                self._renew_at = now + leases.RENEW_EVERY_S
                self._store.run(leases.renew(self._handle))
        except (Fenced, NotFound):
            self.lost.set()
        except FDStoreError as error:
            # the store may come back before the lease runs out; if not, the next try is fenced
            log.warning("the lease of %s could not be renewed: %s", self._handle.id, error)
        return not self.lost.is_set()
