"""What a worker does with a process id: claim the process and run its agent as far as it goes.

The clients of Redis, of the queue and of the model are opened in the operating-system process that
uses them, at the first task there: after a fork, sockets of the parent must not be used.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Executor

import msgspec

from fdstore.agent.models.anthropic import Model
from fdstore.client import Store, connect
from fdstore.errors import FDStoreError, NotFound
from fdstore.permissions import Permissions
from fdstore.runtime.lease import Flag
from fdstore.runtime.runner import Company, Ending, RunPipeline, run_process
from fdstore.runtime.waker import waker
from fdstore.wire.operation import new_op
from fdstore_workers.left_agents import LeftAgents
from fdstore_workers.reports import Reporter

log = logging.getLogger("fdstore.worker")


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a worker works: its name in Redis, its store, what programs may do there, and why it takes
    no agents ("" if it does)."""

    worker: str
    url: str
    prefix: str
    broker_url: str | None
    permissions: Permissions
    no_agents: str = ""


class Clients:
    """The clients of one operating-system process, opened when first used."""

    def __init__(self, place: WorkerSettings) -> None:
        self.place = place
        self._turn = threading.Lock()
        self._pid = 0
        self._store: Store
        self._wake: Callable[[str], None]
        self._model: Model | None
        self._left: LeftAgents | None = None

    def open(self) -> tuple[Store, Callable[[str], None]]:
        """The store, and what wakes other workers."""
        with self._turn:
            if self._pid != os.getpid():
                self._store = connect(self.place.url, self.place.prefix)
                self._wake = waker(self.place.url, self.place.prefix, self.place.broker_url)
                self._model = None
                self._pid = os.getpid()
            return self._store, self._wake

    @property
    def left(self) -> LeftAgents:
        """The agents that were taken from the queue and are left to other workers."""
        with self._turn:
            if self._left is None or self._left.pid != os.getpid():
                self._left = LeftAgents(self.open)
            return self._left

    def model(self) -> Model:
        """The client of the Messages API. Raises `ModelFailed`."""
        with self._turn:
            if self._model is None:
                self._model = Model()
            return self._model


def worker_name() -> str:
    """Return what the worker of this process is called in Redis: `host:pid`. For the supervisor to ask:
    what it forks goes by the same name."""
    return f"{socket.gethostname()}:{os.getpid()}"


def attempt(
    clients: Clients,
    process: str,
    reporter: Reporter,
    stopping: Flag,
    *,
    pipeline: RunPipeline | None = None,
    company: Company,
) -> Ending | None:
    """Run a process as far as it goes in this `company`. None when it could not be tried."""
    place = clients.place
    claim = new_op()
    reporter.claim(process, claim)
    try:
        store, wake = clients.open()
        ending = run_process(
            store,
            process,
            worker=place.worker,
            model=None if place.no_agents else clients.model,
            wake=wake,
            permissions=place.permissions,
            stopping=stopping,
            pipeline=pipeline,
            company=company,
            claim_id=claim,
        )
    except NotFound:
        log.info("%s does not exist any more", process)
    except FDStoreError as error:
        # its lease runs out, and the sweep finds it
        log.warning("%s is left to the sweep: %s", process, error)
    else:
        log.debug("%s: %s", process, ending)
        return ending
    finally:
        reporter.release(process, claim)
    return None


def runner_of(
    clients: Clients, reporter: Reporter, stopping: Flag, pipeline: RunPipeline, apart: Executor | None
) -> Callable[[str], None]:
    """The body of the worker's one task. Pipelines run in the threads of `apart`, where given: one may
    wait for what an agent writes, and must not hold the place that the agent needs to write it. What
    must run alone is left to the supervisor, and agents to other workers where this one takes none."""

    def run(process: str) -> None:
        of_agents = pipeline if apart is None else None
        ending = attempt(clients, process, reporter, stopping, pipeline=of_agents, company="others")
        if ending == "agent":
            clients.left.add(process)
        elif ending == "alone":
            reporter.alone(process)
        elif ending == "pipeline" and apart is not None:
            apart.submit(attempt, clients, process, reporter, stopping, pipeline=pipeline, company="others")

    return run
