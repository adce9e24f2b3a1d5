"""Running one process: claim it, keep its lease, step its agent, hand over its end.

Used in two places: by a worker, which gives its slot back while children run, and by a program that
runs a root itself, which waits for them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Literal

from fdstore.agent.agent import Agent, Finished, Waiting
from fdstore.agent.model import Model, ModelFailed
from fdstore.agent.program import Bundle, Program
from fdstore.client import Store
from fdstore.errors import FDStoreError, Fenced, NotFound
from fdstore.store import leases, processes
from fdstore.store.keys import process_keys
from fdstore.store.views import Namespace
from fdstore.tools.python_tool import imported
from fdstore.tools.tool import Context, Linked
from fdstore.tools.toolbox import Toolbox

log = logging.getLogger("fdstore.agent")

Ending = Literal["not ready", "ended", "waiting", "given back", "lost"]
"""What `run_process` came to: somebody else has it, it ended, its slot is free, it goes back in good
order, or another attempt took it."""


class Lease:
    """Keeps the lease of a process from a thread that the work cannot hold up."""

    def __init__(self, store: Store, space: Namespace) -> None:
        self._store = store
        self._space = space
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
        while not self._done.wait(leases.RENEW_EVERY_S):
            try:
                self._store.run(leases.renew(self._space))
            except (Fenced, NotFound):
                self.lost.set()
                return
            except FDStoreError as error:
                # the store may come back before the lease runs out; if not, the next try is fenced
                log.warning("the lease of %s could not be renewed: %s", self._space.id, error)


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
    *,
    export_root: str,
    files_root: str,
    wake: Callable[[str], None],
) -> Toolbox:
    """The tools that a program has, on the descriptors of its process."""
    context = Context(
        space=space,
        prefix=prefix,
        config=program.file_descriptor,
        enabled=frozenset(program.tools),
        fds_on=program.fds_on,
        export_root=export_root,
        files_root=files_root,
        linked=linked_of(bundle, bundle_text, program),
        wake=wake,
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
    stopping: threading.Event | None = None,
) -> Ending:
    """Runs a process until it ends, waits, or is somebody else's.

    `model` makes the client, `wake` sends wake-ups. With `wait_here` children are waited for in this
    call. When `stopping` is set the process goes back to be run elsewhere, at the next step.
    """
    keys = process_keys(store.prefix, process)
    claimed = store.run(leases.claim(keys, worker))
    if claimed is None:
        return "not ready"
    record = store.run(processes.record(store.prefix, process))
    opened = store.run(processes.open_child(store.prefix, process))
    space = Namespace(keys, opened.limits, claimed.attempt)
    stop = stopping or threading.Event()
    with Lease(store, space) as lease:

        def pause(seconds: float) -> None:
            if lease.lost.wait(seconds):
                raise Fenced(process, "its lease was lost")

        try:
            bundle = Bundle.from_json(claimed.bundle)
            program = bundle.programs[claimed.program]
            root = export_root or program.export_root or "."
            toolbox = toolbox_for(
                space,
                store.prefix,
                bundle,
                claimed.bundle,
                program,
                export_root=root,
                files_root=files_root,
                wake=wake,
            )
            agent = Agent(
                store.run, space, program, toolbox, model(), started_at=record.started_at or 0.0, pause=pause
            )
            while True:
                if lease.lost.is_set():
                    return "lost"
                if stop.is_set():
                    store.run(leases.give_back(space))
                    wake(process)
                    return "given back"
                outcome = agent.step()
                if isinstance(outcome, Waiting):
                    children = list(outcome.children)
                    if wait_here:
                        _wait(store, children, lease, stop)
                    elif store.run(leases.rest(space, children)):
                        return "waiting"
                elif isinstance(outcome, Finished):
                    parent = agent.hand_over(outcome, is_root=not claimed.parent)
                    if parent:
                        wake(parent)
                    return "ended"
        except Fenced:
            return "lost"
        except KeyboardInterrupt:
            store.run(processes.end(space, "cancelled", exit_code=None, reason="interrupted", release=False))
            raise
        except (FDStoreError, ModelFailed) as error:
            if isinstance(error, FDStoreError) and error.type.startswith("store_"):
                raise
            _fail(store, space, str(error), wake)
            return "ended"
        except Exception as error:
            # a defect of ours or of a user's module must not leave a process that nobody ends
            log.exception("process %s failed", process)
            _fail(store, space, f"{type(error).__name__}: {error}"[:500], wake)
            return "ended"


def _wait(store: Store, children: list[str], lease: Lease, stop: threading.Event) -> None:
    while not (lease.lost.is_set() or stop.is_set()):
        if store.run(processes.wait_ended(store.prefix, children, 1.0)):
            return


def _fail(store: Store, space: Namespace, reason: str, wake: Callable[[str], None]) -> None:
    parent = store.run(processes.end(space, "failed", exit_code=None, reason=reason, release=False))
    if parent:
        wake(parent)
