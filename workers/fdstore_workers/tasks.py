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

from fdstore.agent.lease import Flag
from fdstore.agent.model import Model
from fdstore.agent.runner import Ending, RunPipeline, run_process
from fdstore.client import Store, connect
from fdstore.errors import FDStoreError, NotFound
from fdstore.permissions import Permissions
from fdstore.toolset import waker

log = logging.getLogger("fdstore.worker")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a worker works: its store, and what programs may do there."""

    url: str
    prefix: str
    broker_url: str | None
    permissions: Permissions


class Clients:
    """The clients of one operating-system process, opened when first used."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._turn = threading.Lock()
        self._pid = 0
        self._store: Store
        self._wake: Callable[[str], None]
        self._model: Model | None

    def open(self) -> tuple[Store, Callable[[str], None]]:
        """The store, and what wakes other workers."""
        with self._turn:
            if self._pid != os.getpid():
                self._store = connect(self._place.url, self._place.prefix)
                self._wake = waker(self._place.url, self._place.prefix, self._place.broker_url)
                self._model = None
                self._pid = os.getpid()
            return self._store, self._wake

    def model(self) -> Model:
        """The client of the Messages API. Raises `ModelFailed`."""
        with self._turn:
            if self._model is None:
                self._model = Model()
            return self._model


def worker_name() -> str:
    """What this worker is called in Redis: `host:pid`."""
    return f"{socket.gethostname()}:{os.getpid()}"


def runner_of(
    place: Place, stopping: Flag, pipeline: RunPipeline, apart: Executor | None
) -> Callable[[str], None]:
    """The body of the worker's one task. Pipelines run in the threads of `apart`, where given: one may
    wait for what an agent writes, and must not hold the place that the agent needs to write it."""
    clients = Clients(place)

    def run(process: str) -> None:
        if apart is None:
            attempt(process, pipeline)
        elif attempt(process, None) == "pipeline":
            apart.submit(attempt, process, pipeline)

    def attempt(process: str, pipeline: RunPipeline | None) -> Ending | None:
        try:
            store, wake = clients.open()
            ending = run_process(
                store,
                process,
                worker=worker_name(),
                model=clients.model,
                wake=wake,
                permissions=place.permissions,
                stopping=stopping,
                pipeline=pipeline,
            )
        except NotFound:
            log.info("%s does not exist any more", process)
        except FDStoreError as error:
            # its lease runs out, and the sweep finds it
            log.warning("%s is left to the sweep: %s", process, error)
        else:
            log.info("%s: %s", process, ending)
            return ending
        return None

    return run
