"""The agents that a worker without a key took from the queue: their wake-ups wait here for another worker.

A message of the queue does not say whether its process is an agent or a pipeline, so a worker that runs
pipelines alone takes both. It keeps the ids of agents, and puts them back into the queue as soon as a worker
lives that takes agents, and when it stops itself. If it is killed, the sweep finds them.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress

from fdstore.client import Store
from fdstore.errors import FDStoreError
from fdstore.store import leases

log = logging.getLogger("fdstore.worker")

LOOK_EVERY_S = 1.0
"""Also how long an agent waits each time that this worker is faster than the others."""

MAX_LEFT = 10_000
"""Further ones are left to the sweep."""


class LeftAgents:
    """Keeps wake-ups of agents until another worker can take them. Any thread may use it; one
    operating-system process (`pid`) has one. `clients` opens the store and what wakes workers."""

    def __init__(self, clients: Callable[[], tuple[Store, Callable[[str], None]]]) -> None:
        self.pid = os.getpid()
        self._clients = clients
        self._turn = threading.Lock()
        self._ids: dict[str, None] = {}
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    def add(self, process: str) -> None:
        """Keep the wake-up of an agent."""
        with self._turn:
            if process not in self._ids and len(self._ids) < MAX_LEFT:
                log.info("%s is an agent and waits for a worker that takes agents", process)
                self._ids[process] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="left agents", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Put all of them back into the queue."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            with suppress(FDStoreError):  # then the sweep finds them
                self._put_back()

    def _keep(self) -> None:
        while not self._stopped.wait(LOOK_EVERY_S):
            try:
                store, _ = self._clients()
                there_is_one = bool(self._ids) and store.run(leases.takes_agents(store.prefix))
                if there_is_one:
                    self._put_back()
            except FDStoreError as error:
                log.debug("whether a worker takes agents is unknown: %s", error)

    def _put_back(self) -> None:
        _, wake = self._clients()
        with self._turn:
            ids, self._ids = self._ids, {}
        for process in ids:
            wake(process)
