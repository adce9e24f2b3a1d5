"""A whole worker: the Celery application, its task, its sweeper; what `fdstore worker` runs.

    TERM ─┬─ no more messages are taken
          ├─ agents between two steps, or pausing: their processes go back at once
          ├─ agents in a step: may end it, and after 20 s their processes go back too
          └─ the worker ends: when its tasks have, or a little later without them

The last is for tasks that wait for a model or run somebody's function: a thread cannot be ended from
outside, and what such a task does from then on is fenced.
"""

from __future__ import annotations

import logging
import mmap
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import billiard
from celery import signals

from fdstore.agent import lease
from fdstore.client import connect
from fdstore.permissions import granted
from fdstore.store.server import is_embedded
from fdstore.toolset import waker
from fdstore_workers.app import make_app, start_worker
from fdstore_workers.pipelines import run_pipeline
from fdstore_workers.sandbox import Engine, find
from fdstore_workers.sweeper import Sweeper
from fdstore_workers.tasks import Place, runner_of, worker_name

log = logging.getLogger("fdstore.worker")

PIPELINES = 64
"""Pipelines at a time, beside the agents; more of them wait."""

LEAVE_AFTER_S = 3.0
"""How long after the last process went back a task may still go on: renewing looks every half second,
and Redis may want a second try."""


class Stopping:
    """Set once, seen in every process forked from this one. Shared memory without a lock: it is set by
    a signal handler, and a process that was killed must not be able to hold anything."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 1)

    def set(self) -> None:
        self._shared[0] = 1

    def is_set(self) -> bool:
        return self._shared[0] == 1


class Departure:
    """Ends the worker some time after it was told to stop, whatever its tasks still do."""

    def __init__(self, stopping: Stopping, sweeper: Sweeper) -> None:
        self._stopping = stopping
        self._sweeper = sweeper
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="departure", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def cancel(self) -> None:
        """The worker ended by itself."""
        self._over.set()

    def _keep(self) -> None:
        while not self._stopping.is_set():
            if self._over.wait(lease.LOOK_UP_EVERY_S):
                return
        if self._over.wait(lease.STOP_GRACE_S + LEAVE_AFTER_S):
            return
        log.warning("stopped in the middle of a step; its process was given back")
        self._sweeper.stop()
        for child in billiard.active_children():
            child.terminate()
        logging.shutdown()
        os._exit(0)


def work(
    url: str | None,
    prefix: str | None,
    broker_url: str | None,
    *,
    concurrency: int,
    pool: Literal["threads", "prefork"],
    allow_python: Sequence[str] = (),
    allow_commands: Sequence[str] = (),
    export_root: str | None = None,
    preload_root: str | None = None,
    engine: Engine = "auto",
    unsandboxed_commands: bool = False,
) -> int:
    """Works until TERM; the exit status.

    Raises `StoreUnavailable`, `UnsafeStore`.
    """
    store = connect(url, prefix)
    permissions = granted(
        embedded=is_embedded(store.url),
        python=allow_python,
        commands=allow_commands,
        export_root=export_root,
        preload_root=preload_root,
    )
    stopping = Stopping()
    place = Place(
        url=store.url,
        prefix=store.prefix,
        broker_url=broker_url,
        permissions=permissions,
    )
    private = [
        Path(root) for root in (os.getcwd(), permissions.export_root, permissions.preload_root) if root
    ]
    sandbox = cache(partial(find, engine=engine, allow_unsandboxed=unsandboxed_commands, private=private))
    # a pool of processes runs its pipelines in its processes
    apart = ThreadPoolExecutor(PIPELINES, "pipeline") if pool == "threads" else None
    run = runner_of(place, stopping, partial(run_pipeline, sandbox, permissions), apart)
    app = make_app(store.url, broker_url, run=run, prefix=store.prefix)
    wake = waker(store.url, store.prefix, broker_url)
    commands = "; ".join(filter(None, (permissions.described, sandbox().describe())))
    sweeper = Sweeper(store, worker_name(), wake, commands=commands)

    departure = Departure(stopping, sweeper)

    def begin(**_: Any) -> None:
        sweeper.start()
        departure.start()

    def stop(**_: Any) -> None:
        stopping.set()

    signals.worker_ready.connect(begin, dispatch_uid="fdstore sweeper")
    signals.worker_shutting_down.connect(stop, dispatch_uid="fdstore stopping")
    try:
        return start_worker(app, concurrency, pool)
    finally:
        if apart is not None:
            stopping.set()
            apart.shutdown()  # the departure goes on counting: nobody waits for ever
        departure.cancel()
        sweeper.stop()
        store.close()
