"""Running one process: claim it, keep its lease, step its agent, hand over its end.

Used in two places: by a worker, which gives its slot back while children run, and by a program that
runs a root itself, which waits for them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Literal, Protocol

import msgspec

from fdstore.agent.agent import Agent, Finished, Waiting
from fdstore.agent.model import Model, ModelFailed
from fdstore.agent.past import past_of
from fdstore.agent.program import Bundle, Program
from fdstore.agent.voice import voice_of
from fdstore.client import Store
from fdstore.errors import (
    FDStoreError,
    Fenced,
    NotFound,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UnknownOutcome,
    UnsafeStore,
)
from fdstore.store import inspection, leases, processes
from fdstore.store.keys import ProcessKeys, process_keys
from fdstore.store.operation import new_op
from fdstore.store.views import Namespace
from fdstore.tools.brief import Birth, ForkBrief, PipeBrief
from fdstore.tools.python_tool import imported
from fdstore.tools.tool import Context, Linked
from fdstore.tools.toolbox import Toolbox

log = logging.getLogger("fdstore.agent")

Ending = Literal["not ready", "pipeline", "ended", "waiting", "given back", "lost"]
"""What `run_process` came to: somebody else has it, it is left to who runs pipelines, it ended, its slot
is free, it goes back in good order, or another attempt took it."""

LOOK_UP_EVERY_S = 0.5
"""How often who waits looks whether the worker stops."""

STOP_GRACE_S = 20.0
"""How long a step may go on when the worker stops. A model's answer or a user's tool may take minutes,
and cannot be ended from outside; what it comes to is then not written by this attempt."""


STORE_TROUBLE = (StoreUnavailable, StoreFull, StoreReadOnly, UnknownOutcome, UnsafeStore)
"""The store's trouble and not the agent's: another attempt goes on when it is over."""


class Flag(Protocol):
    """What says that the worker stops: a `threading.Event`, or something that crosses a fork."""

    def is_set(self) -> bool: ...


class Stopped(Exception):
    """The worker stops: the process is to go back."""


class Lease:
    """Keeps the lease of a process from a thread that the work cannot hold up.

    When the worker stops and the step in hand takes too long, it gives the process back from there:
    another worker goes on with it, and this attempt writes nothing more.
    """

    def __init__(self, store: Store, space: Namespace, stop: Flag, wake: Callable[[str], None]) -> None:
        self._store = store
        self._space = space
        self._stop = stop
        self._wake = wake
        self._done = threading.Event()
        self.lost = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"lease {space.id}", daemon=True)

    def __enter__(self) -> Lease:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _keep(self) -> None:
        renew_at = time.monotonic() + leases.RENEW_EVERY_S
        leave_at = None
        while not self._done.wait(min(LOOK_UP_EVERY_S, leases.RENEW_EVERY_S)):
            now = time.monotonic()
            if leave_at is None and self._stop.is_set():
                leave_at = now + STOP_GRACE_S
            try:
                if leave_at is not None and now >= leave_at:
                    self._store.run(leases.give_back(self._space))
                    self.lost.set()
                    self._wake(self._space.id)
                    return
                if now >= renew_at:
                    renew_at = now + leases.RENEW_EVERY_S
                    self._store.run(leases.renew(self._space))
            except (Fenced, NotFound):
                self.lost.set()
                return
            except FDStoreError as error:
                # the store may come back before the lease runs out; if not, the next try is fenced
                log.warning("the lease of %s could not be renewed: %s", self._space.id, error)


RunPipeline = Callable[[Store, Namespace, PipeBrief, threading.Event, Flag], Finished]
"""Runs the commands of a pipeline and writes what they give; is told of a lost lease and of a stop."""


def linked_of(bundle: Bundle, text: str, program: Program) -> dict[str, Linked]:
    """The programs that `program` may spawn, for the tool."""
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
    space: Namespace,
    prefix: str,
    bundle: Bundle,
    bundle_text: str,
    program: Program,
    birth: Birth,
    *,
    export_root: str,
    files_root: str,
    wake: Callable[[str], None],
) -> Toolbox:
    """The tools that a program has, on the descriptors of its process; a copy of another starts no
    processes, unless it was born with the right to."""
    tools = frozenset(program.tools)
    if isinstance(birth, ForkBrief) and not birth.may_spawn:
        tools -= {"fork", "spawn"}
    context = Context(
        space=space,
        prefix=prefix,
        config=program.file_descriptor,
        enabled=tools,
        fds_on=program.fds_on,
        export_root=export_root,
        files_root=files_root,
        linked=linked_of(bundle, bundle_text, program),
        wake=wake,
        # the tree has the bundle already, so its text is not sent again for each copy
        itself=processes.Program(program.name, bundle.digest(), ""),
        forks_may_spawn=program.limits.forks_may_spawn,
        commands=program.commands,
        stream_bytes=program.limits.stream_bytes,
        stream_idle_seconds=program.limits.stream_idle_seconds,
        wall_seconds=program.limits.wall_seconds,
    )
    return Toolbox(context, [imported(path) for path in program.python])


def run_process(
    store: Store,
    process: str,
    *,
    worker: str,
    model: Callable[[], Model],
    wake: Callable[[str], None],
    files_root: str,
    export_root: str | None = None,
    wait_here: bool = False,
    leave_on_interrupt: bool = False,
    stopping: Flag | None = None,
    pipeline: RunPipeline | None = None,
) -> Ending:
    """Runs a process until it ends, waits, or is somebody else's.

    `model` makes the client, `wake` sends wake-ups. With `wait_here` children are waited for in this
    call. When `stopping` is set the process goes back to be run elsewhere, at the next step. `pipeline`
    runs the commands of a process that is no agent; without it such a process is left alone.

    When the store has trouble that lasts, a worker gives the process back as soon as it can. Who waits
    here for children is told: `StoreUnavailable` and the like are raised, and another attempt goes on
    with the process once its lease is over. Ctrl-C cancels it, with all below it, or leaves it to the
    workers (`leave_on_interrupt`).
    """
    keys = process_keys(store.prefix, process)
    stop: Flag = stopping or threading.Event()
    claimed = _claimed(
        store, keys, worker, agents_only=pipeline is None, again_until=None if wait_here else stop
    )
    if claimed is None:
        return "not ready"
    if claimed == "pipeline":
        return "pipeline"
    space = Namespace(keys, claimed.limits, claimed.attempt)
    with Lease(store, space, stop, wake) as lease:

        def pause(seconds: float) -> None:
            until = time.monotonic() + seconds
            while (left := until - time.monotonic()) > 0:
                if lease.lost.wait(min(left, LOOK_UP_EVERY_S)):
                    raise Fenced(process, "its lease was lost")
                if stop.is_set():
                    raise Stopped

        try:
            if pipeline is not None and claimed.is_pipeline:
                brief = msgspec.json.decode(claimed.journal[0], type=PipeBrief)
                end = pipeline(store, space, brief, lease.lost, stop)
                return _end_pipeline(store, space, end, wake)
            bundle = Bundle.from_json(claimed.bundle)
            program = bundle.programs[claimed.program]
            root = export_root or program.export_root or "."
            past = store.run(past_of(store.prefix, claimed.journal))
            toolbox = toolbox_for(
                space,
                store.prefix,
                bundle,
                claimed.bundle,
                program,
                past.birth,
                export_root=root,
                files_root=files_root,
                wake=wake,
            )
            agent = Agent(
                store.run,
                space,
                program,
                toolbox,
                model(),
                past=past,
                started_at=claimed.started_at,
                pause=pause,
                voice=store.run(voice_of(space, claimed.outputs, past.last_answer)),
            )
            while True:
                if lease.lost.is_set():
                    return "lost"
                if stop.is_set():
                    raise Stopped
                outcome = agent.step()
                if isinstance(outcome, Waiting):
                    children = list(outcome.children)
                    left_s = None if outcome.until_s is None else outcome.until_s - time.time()
                    if wait_here:
                        _wait(store, children, left_s, lease, stop)
                    elif store.run(leases.rest(space, children, left_s)):
                        return "waiting"
                elif isinstance(outcome, Finished):
                    parent = agent.hand_over(outcome, is_root=not claimed.parent)
                    if parent:
                        wake(parent)
                    return "ended"
        except Stopped:
            store.run(leases.give_back(space))
            wake(process)
            return "given back"
        except Fenced:
            return "lost"
        except KeyboardInterrupt:
            with suppress(FDStoreError):
                if leave_on_interrupt:
                    store.run(leases.give_back(space))
                    wake(process)
                else:
                    store.run(processes.cancel(store.prefix, process, "interrupted"))
            raise
        except STORE_TROUBLE as error:
            if wait_here:
                raise
            log.warning("%s cannot go on now: %s", process, error)
            return _leave(store, space, lease, stop)
        except (FDStoreError, ModelFailed) as error:
            return _fail(store, space, str(error), wake)
        except Exception as error:
            # a defect of ours or of a user's module must not leave a process that nobody ends
            log.exception("process %s failed", process)
            return _fail(store, space, f"{type(error).__name__}: {error}"[:500], wake)


def _claimed(
    store: Store, keys: ProcessKeys, worker: str, *, agents_only: bool, again_until: Flag | None
) -> leases.Claim | Literal["pipeline"] | None:
    """Takes the process. A worker whose claim got no answer asks until it has one: a lease that nobody
    knows of would run out, and count as a loss."""
    op = new_op()
    while True:
        try:
            return store.run(leases.claim(keys, worker, op, agents_only=agents_only))
        except UnknownOutcome as error:
            if again_until is None or again_until.is_set():
                raise
            log.warning("%s may have been taken: %s", keys.process, error)
            time.sleep(LOOK_UP_EVERY_S)


def _wait(store: Store, children: list[str], left_s: float | None, lease: Lease, stop: Flag) -> None:
    until = None if left_s is None else time.monotonic() + left_s
    while not (lease.lost.is_set() or stop.is_set()):
        slice_s = 1.0 if until is None else min(1.0, until - time.monotonic())
        if slice_s <= 0 or store.run(inspection.wait_ended(store.prefix, children, slice_s)):
            return


def _end_pipeline(store: Store, space: Namespace, end: Finished, wake: Callable[[str], None]) -> Ending:
    parent = store.run(
        processes.end(space, end.state, exit_code=end.exit_code, reason=end.reason, release=True)
    )
    if parent:
        wake(parent)
    return "ended"


def _leave(store: Store, space: Namespace, lease: Lease, stop: Flag) -> Ending:
    """Gives the process back once the store takes it, so that its trouble does not count as a loss. No
    wake-up: a moment later, when the sweep sends one, there is more hope."""
    while not (lease.lost.is_set() or stop.is_set()):
        try:
            store.run(leases.give_back(space))
            return "given back"
        except STORE_TROUBLE:
            lease.lost.wait(LOOK_UP_EVERY_S)
    return "lost"


def _fail(store: Store, space: Namespace, reason: str, wake: Callable[[str], None]) -> Ending:
    try:
        parent = store.run(
            processes.end(space, "failed", exit_code=None, reason=reason, release=False, broken=reason)
        )
    except (Fenced, NotFound):
        return "lost"
    if parent:
        wake(parent)
    return "ended"
