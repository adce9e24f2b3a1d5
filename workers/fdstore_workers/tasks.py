"""The task of a worker: claim the process with the received id and run it as far as possible.

The clients of Redis, queue and model are opened by the first task of each operating-system process: after a
fork the parent's sockets must not be used.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import msgspec

from fdstore.agents.loop.models.providers import ModelClients
from fdstore.agents.runtime.claim import Flag
from fdstore.agents.runtime.run_process import AttemptOutcome, Company, RunCommands, run_process
from fdstore.agents.runtime.waker import waker
from fdstore.client import Store, connect
from fdstore.errors import FDStoreError, NotFound
from fdstore.files.permissions import Permissions
from fdstore.setup.logs import facts
from fdstore.wire.operation import new_op
from fdstore_workers.left_agents import DeferredAgents
from fdstore_workers.reports import Reporter

log = logging.getLogger("fdstore.worker")


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a worker: its name in Redis, its store, the permissions of programs, why it asks no
    model of an SDK's own server ("" if it does), and whether it runs agents at all."""

    worker: str
    url: str
    prefix: str
    broker_url: str | None
    permissions: Permissions
    no_agents: str = ""
    runs_agents: bool = True


class Clients:
    """The clients of one operating-system process, opened on first use."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._pid = 0
        self._store: Store
        self._wake: Callable[[str], None]
        self._models: ModelClients
        self._left: DeferredAgents | None = None

    def open(self) -> tuple[Store, Callable[[str], None]]:
        """Return the store and the function that wakes other workers."""
        with self._lock:
            if self._pid != os.getpid():
                self._store = connect(self.settings.url, self.settings.prefix)
                self._wake = waker(self.settings.url, self.settings.prefix, self.settings.broker_url)
                self._models = ModelClients()
                self._pid = os.getpid()
            return self._store, self._wake

    @property
    def left(self) -> DeferredAgents:
        """The received processes that are left to other workers."""
        with self._lock:
            if self._left is None or self._left.pid != os.getpid():
                self._left = DeferredAgents(self.open, self.settings.worker)
            return self._left

    @property
    def models(self) -> ModelClients:
        """The clients of models, of this operating-system process."""
        self.open()
        return self._models


def attempt(
    clients: Clients,
    process: str,
    reporter: Reporter,
    stopping: Flag,
    *,
    pipeline: RunCommands | None = None,
    company: Company,
    in_slot: bool = True,
) -> AttemptOutcome | None:
    """Run a process as far as possible in this `company`, in one of the worker's slots or beside them. None
    if the attempt failed."""
    settings = clients.settings
    claim = new_op()
    reporter.claim(process, claim, in_slot=in_slot)
    try:
        store, wake = clients.open()
        ending = run_process(
            store,
            process,
            worker=settings.worker,
            model=clients.models if settings.runs_agents else None,
            lacks=settings.permissions.models.missing,
            wake=wake,
            permissions=settings.permissions,
            stopping=stopping,
            pipeline=pipeline,
            company=company,
            claim_id=claim,
            user_code=lambda: reporter.user_code(process, claim),
            when_lost=lambda: reporter.lost(process, claim),
        )
    except NotFound:
        log.info("%s no longer exists", process)
    except FDStoreError as error:
        # its lease expires, and the sweep finds it
        log.warning("%s is left to the sweep: %s", process, error, extra=facts(process=process))
    else:
        log.debug("%s: %s", process, ending)
        return ending
    finally:
        reporter.release(process, claim)
    return None


def make_task_body(
    clients: Clients, reporter: Reporter, stopping: Flag, pipeline: RunCommands, apart: Executor | None
) -> Callable[[str], None]:
    """Return the body of the worker's only task.

    Pipelines run in the executor `apart`, if there is one: a pipeline may wait for the output of an agent,
    and must not occupy the slot that the agent needs. The supervisor runs processes that must run alone, and
    other workers run the agents if this one runs none.
    """

    def run(process: str) -> None:
        in_this_thread = pipeline if apart is None else None
        ending = attempt(clients, process, reporter, stopping, pipeline=in_this_thread, company="others")
        if ending == "agent":
            clients.left.add(process, "is an agent and waits for a worker that runs agents")
        elif ending == "not allowed":
            clients.left.add(process, "is not allowed here and waits for a worker whose operator allows it")
        elif ending == "not able":
            clients.left.add(process, "asks a model that cannot be asked here and waits for another worker")
        elif ending == "alone":
            reporter.alone(process)
        elif ending == "pipeline" and apart is not None:
            how: dict[str, Any] = {"pipeline": pipeline, "company": "others", "in_slot": False}
            apart.submit(attempt, clients, process, reporter, stopping, **how)

    return run
