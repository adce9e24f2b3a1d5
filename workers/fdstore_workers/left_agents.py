"""Agents that a worker without an API key received: it holds their wake-ups for other workers.

A message does not tell whether its process is an agent or a pipeline, so a worker for pipelines only receives
both. It keeps the ids of agents and returns them to the queue as soon as another worker accepts agents, and
when it shuts down. If it is killed, the sweep finds them.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress

from fdstore.client import Store
from fdstore.errors import FDStoreError
from fdstore.store import worker_registry

log = logging.getLogger("fdstore.worker")

LOOK_EVERY_S = 1.0
"""Also the delay of an agent each time that this worker receives it before the others."""

MAX_LEFT = 10_000
"""The sweep finds any others."""


class DeferredAgents:
    """Wake-ups of agents, kept until another worker can run them.

    Thread-safe; one per operating-system process (`pid`). `clients` returns the store and the wake function.
    """

    def __init__(self, clients: Callable[[], tuple[Store, Callable[[str], None]]]) -> None:
        self.pid = os.getpid()
        self._clients = clients
        self._lock = threading.Lock()
        self._ids: dict[str, None] = {}
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    def add(self, process: str) -> None:
        """Keep the wake-up of an agent."""
        with self._lock:
            if process not in self._ids and len(self._ids) < MAX_LEFT:
                log.info("%s is an agent and waits for a worker that runs agents", process)
                self._ids[process] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="left agents", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Return all wake-ups to the queue."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            with suppress(FDStoreError):  # then the sweep finds them
                self._put_back()

    def _keep(self) -> None:
        while not self._stopped.wait(LOOK_EVERY_S):
            try:
                store, _ = self._clients()
                can_put_back = bool(self._ids) and store.run(worker_registry.has_agent_worker(store.prefix))
                if can_put_back:
                    self._put_back()
            except FDStoreError as error:
                log.debug("cannot look for a worker that runs agents: %s", error)

    def _put_back(self) -> None:
        _, wake = self._clients()
        with self._lock:
            ids, self._ids = self._ids, {}
        for process in ids:
            wake(process)
