"""One attempt at a claimed process: its lease, its end, and what a failure of the store or the process does.

What the attempt runs, an agent, a pipeline or asks, is passed in by `run_process`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, TypeVar

from fdstore.agents.loop.attempt_log import AttemptLog
from fdstore.agents.loop.models.base import ModelFailed
from fdstore.agents.runtime.claim import Flag, Lease, WorkerStopping
from fdstore.agents.runtime.store_wait import WaitLog, until_taken
from fdstore.client import Store
from fdstore.errors import REFUSALS, STORE_FAILURES, FDStoreError, Fenced, NewerFormat, NotAllowed, NotFound
from fdstore.errors.description import describe_error, logged
from fdstore.model import ends
from fdstore.model.lifecycle import ProcessEnd
from fdstore.store.keys import ProcessKeys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import leases, processes
from fdstore.telemetry.counts import count
from fdstore.wire.operation import Operation

log = logging.getLogger("fdstore.agent")

T = TypeVar("T")

_ends = WaitLog(log, "the end of a process waits for the store")
_answers = WaitLog(log, "answers of models wait for the store")

LOST: tuple[type[FDStoreError], ...] = (Fenced, NotFound, *STORE_FAILURES)
"""The errors of an end that another attempt has; those of the store only if the lease was lost."""

AttemptOutcome = Literal[
    "not ready",
    "pipeline",
    "agent",
    "alone",
    "not allowed",
    "not able",
    "ended",
    "waiting",
    "given back",
    "lost",
]
"""Result of `run_process`. `not ready`: another attempt runs it, or it has ended. `pipeline`, `agent`: left
to a worker that runs this kind. `alone`: it must run in an operating-system process of its own.
`not allowed`: this worker's operator does not allow what it needs. `not able`: a package or a key for its
model is missing here. `ended`: this attempt ended it. `waiting`: parked until children end. `given back`:
returned to the queue. `lost`: another attempt has it."""


class Attempt:
    """A claimed process that is run here. `wake` sends a wake-up for a process id, `when_lost` is called when
    its lease is lost."""

    def __init__(
        self,
        store: Store,
        keys: ProcessKeys,
        claim: leases.Claim,
        stopping: Flag,
        wake: Callable[[str], None],
        when_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self.store = store
        self.process = keys.process
        self.claim = claim
        self.stopping = stopping
        self.wake = wake
        self.handle = ProcessHandle(keys, claim.limits, claim.attempt)
        self.lease = Lease(store, self.handle, stopping, wake, when_lost)
        program = claim.program or ("asks" if claim.is_lane else "pipeline")
        self.log = AttemptLog(keys.process, program, claim.age_s, claim.attempt)

    def run(
        self, work: Callable[[Attempt], AttemptOutcome], *, wait_here: bool, leave_on_interrupt: bool
    ) -> AttemptOutcome:
        """Run `work` under the lease, and end or return the process when it raises. Raises what
        `run_process` raises."""
        with self.lease.kept():
            try:
                return work(self)
            except WorkerStopping:
                self.lease.release_claim()
                self.log.left("is given back")
                return "given back"
            except Fenced:
                self.log.left("is no longer run here (cancelled, or claimed by another worker)")
                return "lost"
            except KeyboardInterrupt:
                with suppress(FDStoreError):
                    if leave_on_interrupt:
                        self.lease.release_claim()
                    else:
                        why = ends.INTERRUPTED.name
                        self.store.run(processes.cancel(self.store.prefix, self.process, why))
                raise
            except NewerFormat as error:
                log.warning("%s is left to newer workers: %s", self.process, error)
                ending = self._release_claim(self.claim.wakes, str(error))
                if wait_here:
                    raise
                return ending
            except STORE_FAILURES as error:
                if wait_here:
                    raise
                log.warning("%s cannot go on now: %s", self.process, error)
                return self._release_claim()
            except NotAllowed as error:
                if wait_here:  # the caller can allow it and try again
                    self._release_claim()
                    raise
                if self.claim.is_pipeline:  # its caller waits for the reason
                    return self._fail(ends.REFUSED.text(error))
                log.warning("%s is left to other workers: %s", self.process, error)
                return self._release_claim(self.claim.wakes, str(error))
            except (FDStoreError, ModelFailed) as error:
                return self._fail(str(error))
            except Exception as error:
                # a bug here or in a user's module must not leave a process that never ends
                log.error("process %s failed", self.process, exc_info=logged(error))
                return self._fail(describe_error(error)[:500])

    def end(self, step: Callable[[], T]) -> T:
        """Return the result of `step`, which writes how the process ended: finished work is not given up
        because the store takes no writes. Repeated until it does, or until the lease is lost."""
        return until_taken(step, self.lease.lost, _ends)

    def keep(self, operation: Callable[[], Operation[T]]) -> T:
        """Run the operation, which stores an answer of the model or a result of a call: both were paid for.
        Repeated as in `end` while Redis takes no writes, and given up by a worker that stops."""
        return until_taken(lambda: self.store.run(operation()), self.lease, _answers, REFUSALS)

    def ended(self, end: ProcessEnd, woken: tuple[str, ...]) -> AttemptOutcome:
        """Log an end that is stored, and wake the ancestors that waited for it."""
        self.log.ended(end.state, end.exit_code, end.reason)
        count("fdstore_process_ends_total", end.state)
        for ancestor in woken:
            self.wake(ancestor)
        return "ended"

    def _release_claim(self, in_vain: int | None = None, trouble: str = "") -> AttemptOutcome:
        try:
            self.lease.release_claim_later(in_vain, trouble)
        except (Fenced, WorkerStopping):
            return "lost"
        self.log.left("is given back")
        return "given back"

    def _fail(self, reason: str) -> AttemptOutcome:
        end = ProcessEnd("failed", None, reason)
        try:
            woken = self.end(
                lambda: self.store.run(
                    processes.end(self.handle, "failed", exit_code=None, reason=reason, release=False)
                )
            )
        except LOST:
            return "lost"
        return self.ended(end, woken)
