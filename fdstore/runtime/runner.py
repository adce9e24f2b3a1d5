"""Run one process: claim it, step its agent, and write its end.

Used by a worker, which releases its slot while children run, and by a program that runs a root process
itself, which waits for them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

import msgspec

from fdstore import lifecycle
from fdstore.agent.agent import Agent, Finished, Waiting
from fdstore.agent.answer_stream import open_answer_stream
from fdstore.agent.attempt_log import AttemptLog
from fdstore.agent.history import read_history
from fdstore.agent.models.anthropic import Model, ModelFailed
from fdstore.agent.program import Bundle, Program
from fdstore.client import Store
from fdstore.errors import STORE_FAILURES, FDStoreError, Fenced, NewerFormat, NotAllowed, NotFound, quoted
from fdstore.permissions import Permissions
from fdstore.runtime.lease import Flag, Lease, Stopped, hold_lease
from fdstore.store import inspection, leases, processes
from fdstore.store.content_info import ProcessHandle
from fdstore.store.decoding import decoding
from fdstore.store.keys import process_keys
from fdstore.tools.python_tool import import_tool
from fdstore.tools.task import ForkTask, PipeTask, Task
from fdstore.tools.tool import Context, Linked
from fdstore.tools.toolbox import BUILT_IN, Toolbox
from fdstore.wire.operation import new_op

log = logging.getLogger("fdstore.agent")

Ending = Literal["not ready", "pipeline", "agent", "alone", "ended", "waiting", "given back", "lost"]
"""Result of `run_process`. `not ready`: another attempt runs it, or it has ended. `pipeline`, `agent`: left
to a worker that runs this kind. `alone`: it must run in an operating-system process of its own. `ended`: this
attempt ended it. `waiting`: parked until children end. `given back`: returned to the queue. `lost`: another
attempt has it."""

_ONLY: dict[tuple[bool, bool], leases.Kind | None] = {
    (True, True): None,
    (True, False): "agents",
    (False, True): "pipelines",
    (False, False): "neither",
}
"""The kinds of processes to claim, by whether there is a model and a runner of pipelines."""

Company = Literal["others", "none", "none for long"]
"""Which processes share the operating-system process: others; none; or none until the process is past the
point at which it was lost."""

RunPipeline = Callable[[Store, ProcessHandle, PipeTask, threading.Event, Flag], Finished]
"""Run the commands of a pipeline and store their output. The event is set when the lease is lost, the flag
when the worker stops."""


def linked_programs_of(bundle: Bundle, text: str, program: Program) -> dict[str, Linked]:
    """Return the programs that `program` may spawn, by alias."""
    digest = bundle.digest()
    return {
        alias: Linked(
            key=linked.key,
            description=linked.description,
            digest=digest,
            bundle=text,
            preload=bundle.programs[linked.key].preload,
        )
        for alias, linked in program.linked.items()
    }


def toolbox_for(
    handle: ProcessHandle,
    prefix: str,
    bundle: Bundle,
    bundle_text: str,
    program: Program,
    birth: Task,
    *,
    wake: Callable[[str], None],
    permissions: Permissions,
) -> Toolbox:
    """Return the tools of a program for its process, limited by `permissions`. A fork has no `fork` and no
    `spawn` unless its task allows them. Raises `NotAllowed`, `PathRefused`, `InvalidArgument`."""
    permissions.check_python(program.python)
    export_root = permissions.export_root_of(program.export_root)
    if "fd_to_file" in program.tools and export_root is None:
        log.warning("%s has no fd_to_file: this worker has no export root (--export-root)", handle.id)
    tools = frozenset(program.tools)
    if isinstance(birth, ForkTask) and not birth.may_spawn:
        tools -= {"fork", "spawn"}
    context = Context(
        handle=handle,
        prefix=prefix,
        config=program.file_descriptor,
        enabled=tools,
        fds_on=program.fds_on,
        export_root=export_root,
        preload_root=permissions.preload_root_of(program.preload_root),
        permissions=permissions,
        linked=linked_programs_of(bundle, bundle_text, program),
        wake=wake,
        # the tree already has the bundle, so its text is not sent again for each fork
        itself=processes.Program(program.name, bundle.digest(), ""),
        forks_may_spawn=program.limits.forks_may_spawn,
        commands=program.commands,
        stream_bytes=program.limits.stream_bytes,
        stream_idle_seconds=program.limits.stream_idle_seconds,
        wall_seconds=program.limits.wall_seconds,
    )
    tools_path = program.tools_path if permissions.all_allowed else None
    functions = {path: import_tool(path, tools_path) for path in program.python}
    permissions.check_origin({path: getattr(each, "__module__", "") for path, each in functions.items()})
    return Toolbox(context, list(functions.values()))


def run_process(
    store: Store,
    process: str,
    *,
    worker: str,
    model: Callable[[], Model] | None,
    wake: Callable[[str], None],
    permissions: Permissions,
    own: Bundle | None = None,
    wait_here: bool = False,
    leave_on_interrupt: bool = False,
    stopping: Flag | None = None,
    pipeline: RunPipeline | None = None,
    company: Company = "none",
    claim_id: str | None = None,
) -> Ending:
    """Run a process until it ends, waits, or is run elsewhere.

    model               creates the client of the model; None: claim no agents
    wake                sends a wake-up for a process id
    permissions         what the process's program may do here
    own                 the bundle that this program launched itself, in place of the stored one
    wait_here           wait in this call for children instead of parking the process
    leave_on_interrupt  on Ctrl-C return the process to the workers instead of cancelling its tree
    stopping            when set, no process is claimed, and a claimed one is returned at the next step
    pipeline            runs the commands of a pipeline; None: claim no pipelines
    company             a process that may have killed its worker is not claimed in the company of others
    claim_id            identifies this claim, for a supervisor that may have to return the process

    During a lasting store outage a worker returns the process as soon as it can. With `wait_here`,
    `StoreUnavailable` and the like are raised instead, and another attempt continues once the lease expires.
    Raises `KeyboardInterrupt` on Ctrl-C.
    """
    keys = process_keys(store.prefix, process)
    stop: Flag = stopping or threading.Event()
    if stop.is_set():
        # its queue message is consumed, so send another
        wake(process)
        return "given back"
    claim = hold_lease(
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
    alone_until = claim.alone_until if company == "none for long" else None
    handle = ProcessHandle(keys, claim.limits, claim.attempt)
    lease = Lease(store, handle, stop, wake)
    attempt_log = AttemptLog(process, claim.program or "pipeline", claim.age_s)
    with lease.kept():
        try:
            if pipeline is not None and claim.is_pipeline:
                if stop.is_set():
                    lease.give_back(has_begun=False)
                    attempt_log.left("is given back")
                    return "given back"
                with decoding(f"the journal of process {process}"):
                    task = msgspec.json.decode(claim.journal[0], type=PipeTask)
                end = pipeline(store, handle, task, lease.lost, stop)
                ending = _end_pipeline(store, handle, end, wake)
                attempt_log.ended(end.state, end.exit_code, end.reason)
                return ending
            assert model is not None, "an agent was claimed where none is run"
            with decoding(f"the program of process {process}"):
                bundle = own or Bundle.from_json(claim.bundle)
                program = bundle.programs[claim.program]
            check_tools(process, program)
            history = store.run(read_history(keys, claim.journal))
            if history.unknown:
                log.warning("%s: journal records of newer kinds are skipped: %s", process, history.unknown)
            toolbox = toolbox_for(
                handle,
                store.prefix,
                bundle,
                own.to_json() if own else claim.bundle,
                program,
                history.birth,
                wake=wake,
                permissions=permissions,
            )
            agent = Agent(
                store.run,
                handle,
                program,
                toolbox,
                model(),
                history=history,
                age_s=claim.age_s,
                pause=lease.pause,
                answers=store.run(open_answer_stream(handle, claim.outputs, history.last_answer)),
            )
            while True:
                attempt_log.turns = len(agent.conversation.own_turns)
                lease.check()
                outcome = agent.step()
                if isinstance(outcome, Waiting):
                    children = list(outcome.children)
                    if wait_here:
                        _wait(store, children, outcome.left_s, lease)
                    elif store.run(leases.park(handle, children, outcome.left_s)):
                        attempt_log.left(f"waits for {', '.join(children)}")
                        return "waiting"
                elif isinstance(outcome, Finished):
                    woken = agent.hand_over(outcome, is_root=not claim.parent)
                    attempt_log.ended(outcome.state, outcome.exit_code, outcome.reason)
                    return _ended(woken, wake)
                elif alone_until is not None and agent.written > alone_until:
                    raise Stopped  # past the point of the loss: continue it among the others
        except Stopped:
            lease.give_back()
            attempt_log.left("is given back")
            return "given back"
        except Fenced:
            attempt_log.left("is no longer run here (cancelled, or claimed by another worker)")
            return "lost"
        except KeyboardInterrupt:
            with suppress(FDStoreError):
                if leave_on_interrupt:
                    lease.give_back()
                else:
                    store.run(processes.cancel(store.prefix, process, lifecycle.INTERRUPTED))
            raise
        except NewerFormat as error:
            log.warning("%s is left to newer workers: %s", process, error)
            ending = _give_back(lease, attempt_log, claim.wakes)
            if wait_here:
                raise
            return ending
        except STORE_FAILURES as error:
            if wait_here:
                raise
            log.warning("%s cannot go on now: %s", process, error)
            return _give_back(lease, attempt_log)
        except NotAllowed as error:
            return _fail(store, handle, f"{error.type}: {error}", wake, attempt_log)
        except (FDStoreError, ModelFailed) as error:
            return _fail(store, handle, str(error), wake, attempt_log)
        except Exception as error:
            # a bug here or in a user's module must not leave a process that never ends
            log.exception("process %s failed", process)
            return _fail(store, handle, f"{type(error).__name__}: {error}"[:500], wake, attempt_log)


def _wait(store: Store, children: list[str], left_s: float | None, lease: Lease) -> None:
    until = None if left_s is None else time.monotonic() + left_s
    while True:
        lease.check()
        slice_s = 1.0 if until is None else min(1.0, until - time.monotonic())
        if slice_s <= 0 or store.run(inspection.wait_ended(store.prefix, children, slice_s)):
            return


def _end_pipeline(store: Store, handle: ProcessHandle, end: Finished, wake: Callable[[str], None]) -> Ending:
    woken = store.run(
        processes.end(handle, end.state, exit_code=end.exit_code, reason=end.reason, release=True)
    )
    return _ended(woken, wake)


def _ended(woken: tuple[str, ...], wake: Callable[[str], None]) -> Ending:
    for ancestor in woken:
        wake(ancestor)
    return "ended"


def check_tools(process: str, program: Program) -> None:
    """Check that every built-in tool of a program exists here. Raises `NewerFormat`."""
    unknown = set(program.tools) - BUILT_IN.keys()
    if unknown:
        names = ", ".join(sorted(map(quoted, unknown)))
        raise NewerFormat(f"the program of process {process}", f"it has tools not known here: {names}")


def _give_back(lease: Lease, attempt_log: AttemptLog, in_vain: int | None = None) -> Ending:
    try:
        lease.give_back_later(in_vain)
    except (Fenced, Stopped):
        return "lost"
    attempt_log.left("is given back")
    return "given back"


def _fail(
    store: Store, handle: ProcessHandle, reason: str, wake: Callable[[str], None], attempt_log: AttemptLog
) -> Ending:
    try:
        woken = store.run(
            processes.end(handle, "failed", exit_code=None, reason=reason, release=False, broken=reason)
        )
    except (Fenced, NotFound):
        return "lost"
    attempt_log.ended("failed", None, reason)
    return _ended(woken, wake)
