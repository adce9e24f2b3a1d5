"""Run one process: claim it, and run its agent, its pipeline or its asks.

Used by a worker, which releases its slot while children run, and by a program that runs a root process
itself, which waits for them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Literal

from fdstore.agents.loop.models.base import Model
from fdstore.agents.loop.models.providers import import_client
from fdstore.agents.loop.program_loader import Bundle
from fdstore.agents.runtime.attempt import Attempt, AttemptOutcome
from fdstore.agents.runtime.claim import Flag, claim_process
from fdstore.agents.runtime.eligibility import eligible_elsewhere, read_needs
from fdstore.agents.runtime.run_agent import run_agent
from fdstore.agents.runtime.run_asks import run_asks
from fdstore.client import Store
from fdstore.errors import FDStoreError, NotAllowed, PathRefused
from fdstore.files.permissions import CommandsOff, Permissions
from fdstore.model.lifecycle import ProcessEnd
from fdstore.model.model_servers import ModelServer
from fdstore.results.context import UserCode
from fdstore.setup.logs import about
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import leases, processes
from fdstore.store.record_format import decode_record
from fdstore.telemetry import tracing
from fdstore.telemetry.counts import count
from fdstore.tools.process_task import PipeTask
from fdstore.wire.operation import new_op

log = logging.getLogger("fdstore.agent")

__all__ = ["AttemptOutcome", "Company", "RunCommands", "run_process"]

_ONLY: dict[tuple[bool, bool], leases.Kind | None] = {
    (True, True): None,
    (True, False): "agents",
    (False, True): "pipelines",
    (False, False): "neither",
}
"""The kinds of processes to claim, by whether there is a model and a runner of pipelines."""

RunCommands = Callable[[Store, ProcessHandle, PipeTask, threading.Event, Flag], ProcessEnd]
"""Run the commands of a pipeline and store their output. The event is set when the lease is lost, the flag
when the worker stops."""

Company = Literal["others", "none", "none for long"]
"""The other processes in the operating-system process: some; none; or none until the process is past the
point at which it was lost."""


def run_process(
    store: Store,
    process: str,
    *,
    worker: str,
    model: Callable[[ModelServer], Model] | None,
    wake: Callable[[str], None],
    permissions: Permissions,
    lacks: Callable[[ModelServer], str] | None = None,
    own: Bundle | None = None,
    wait_here: bool = False,
    leave_on_interrupt: bool = False,
    stopping: Flag | None = None,
    pipeline: RunCommands | None = None,
    company: Company = "none",
    claim_id: str | None = None,
    user_code: UserCode = nullcontext,
    when_lost: Callable[[], None] = lambda: None,
) -> AttemptOutcome:
    """Run a process until it ends, waits, or is run elsewhere.

    model               returns a client for a server of models; None: claim no agents
    wake                sends a wake-up for a process id
    permissions         what the process's program may do here
    lacks               returns what is missing here to ask a server, "" for nothing: then no agent that asks
                        it is claimed; None: that is found out when it is asked
    own                 the bundle that this program launched itself, in place of the stored one
    wait_here           wait in this call for children instead of parking the process
    leave_on_interrupt  on Ctrl-C return the process to the workers instead of cancelling its tree
    stopping            when set, no process is claimed, and a claimed one is returned at the next step
    pipeline            runs the commands of a pipeline; None: claim no pipelines
    company             a process that may have killed its worker is not claimed in the company of others
    claim_id            identifies this claim, for a supervisor that may have to return the process
    user_code           returns a context manager around each run of a user's function, for that supervisor
    when_lost           called when the lease is lost while a call goes on here, for that supervisor

    A call waits until its deadline for a store that does not answer, takes no writes, or is full. If that
    lasts longer, a worker returns the process as soon as it can; an end is written when the store takes it.
    With `wait_here`, `StoreUnavailable` and the like are raised instead, and another attempt continues once
    the lease expires. What `permissions` do not include is not claimed; with `wait_here` that is `NotAllowed`
    or `PathRefused`. Raises `KeyboardInterrupt` on Ctrl-C.
    """
    store = store.for_work()
    keys = process_keys(store.prefix, process)
    stop: Flag = stopping or threading.Event()
    if stop.is_set():
        # its queue message is consumed, so send another
        wake(process)
        return "given back"
    if not permissions.all_allowed or permissions.commands_off or lacks is not None:
        [needs] = store.run(read_needs([keys]))
        try:
            needs.check(permissions)
        except (NotAllowed, PathRefused) as error:
            if wait_here:
                raise
            # where commands run nowhere, the pipeline fails here and says so
            if not isinstance(error, CommandsOff) or store.run(
                eligible_elsewhere(store.prefix, worker, [process])
            ):
                log.debug("%s is left to other workers: %s", process, error)
                return "not allowed"
        lack = lacks(needs.server) if lacks and model is not None and needs.server is not None else ""
        if lack:
            log.debug("%s is left to other workers: %s", process, lack)
            return "not able"
        if model is not None and needs.server is not None:
            # before the claim: an import takes seconds of the processor, in which a lease may expire
            import_client(needs.server.provider)
    claim = claim_process(
        store,
        keys,
        worker,
        claim_id or new_op(),
        only=_ONLY[model is not None, pipeline is not None],
        with_others=company == "others",
        again_until=None if wait_here else stop,
    )
    if claim is None:
        return "not ready"
    if isinstance(claim, str):
        return claim
    attempt = Attempt(store, keys, claim, stop, wake, when_lost)

    def work(attempt: Attempt) -> AttemptOutcome:
        if pipeline is not None and claim.is_pipeline:
            return _run_pipeline(attempt, pipeline)
        assert model is not None, "an agent was claimed where none is run"
        alone_until = claim.alone_until if company == "none for long" else None

        def allowed(server: ModelServer) -> Model:
            # here, so that nobody who runs processes can forget it
            permissions.models.check(server)
            return model(server)

        if claim.is_lane:
            return run_asks(attempt, allowed, alone_until=alone_until)
        return run_agent(
            attempt,
            allowed,
            permissions,
            own=own,
            wait_here=wait_here,
            alone_until=alone_until,
            user_code=user_code,
        )

    if claim.is_takeover:
        count("fdstore_process_takeovers_total")
    ended = "failed"
    facts = about(process=process, program=claim.program or None, attempt=claim.attempt)
    traced_attempt = tracing.invoke_agent(
        process,
        claim.program,
        attempt=claim.attempt,
        losses=claim.losses,
        is_pipeline=claim.is_pipeline,
        traceparent=claim.traceparent,
        traced=claim.traced,
    )
    with facts, traced_attempt as span:
        try:
            if traced := tracing.traceparent():
                with suppress(FDStoreError):  # the work finds out what is wrong
                    store.run(leases.renew(attempt.handle, traced=traced))
            ending = attempt.run(work, wait_here=wait_here, leave_on_interrupt=leave_on_interrupt)
            ended = ending.replace(" ", "_")
            tracing.add(span, fdstore_ending=ending, fdstore_turns=attempt.log.turns)
            return ending
        finally:
            count("fdstore_process_attempts_total", ended)


def _run_pipeline(attempt: Attempt, run_commands: RunCommands) -> AttemptOutcome:
    """Run the commands and end the process as they ended. Commands that have begun are never run again."""
    if attempt.stopping.is_set():
        attempt.lease.release_claim(has_begun=False)
        attempt.log.left("is given back")
        return "given back"
    task = decode_record(attempt.claim.task, PipeTask, f"the journal of process {attempt.process}")
    end = run_commands(attempt.store, attempt.handle, task, attempt.lease.lost, attempt.stopping)

    def finish() -> tuple[str, ...]:
        return attempt.store.run(
            processes.end(attempt.handle, end.state, exit_code=end.exit_code, reason=end.reason, release=True)
        )

    return attempt.ended(end, attempt.end(finish))
