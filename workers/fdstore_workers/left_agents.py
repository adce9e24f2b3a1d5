"""Processes that a worker received and does not run: it holds their wake-ups for other workers.

A message does not tell what its process needs, so a worker without an API key receives agents too, and one
whose operator allows little receives what it may not run. It keeps their ids and returns each to the queue as
soon as another worker may run it, and all when it shuts down. If it is killed, the sweep finds them.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress

from fdstore.agents.runtime.eligibility import eligible_elsewhere
from fdstore.client import Store
from fdstore.errors import FDStoreError

log = logging.getLogger("fdstore.worker")

LOOK_EVERY_S = 1.0
"""Also the delay of an agent each time that this worker receives it before the others."""

MAX_LEFT = 10_000
"""The sweep finds any others."""


class DeferredAgents:
    """Wake-ups of processes, kept by `worker` until another one may run them.

    Thread-safe; one per operating-system process (`pid`). `clients` returns the store and the wake function.
    """

    def __init__(self, clients: Callable[[], tuple[Store, Callable[[str], None]]], worker: str) -> None:
        self.pid = os.getpid()
        self._worker = worker
        self._clients = clients
        self._lock = threading.Lock()
        self._ids: dict[str, None] = {}
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    def add(self, process: str, why: str) -> None:
        """Keep the wake-up of a process; `why` is for the log."""
        with self._lock:
            if process not in self._ids and len(self._ids) < MAX_LEFT:
                log.info("%s %s", process, why)
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
                self._wake_all(list(self._ids))

    def _keep(self) -> None:
        while not self._stopped.wait(LOOK_EVERY_S):
            try:
                store, _ = self._clients()
                with self._lock:
                    ids = list(self._ids)
                if ids:
                    self._wake_all(store.run(eligible_elsewhere(store.prefix, self._worker, ids)))
            except FDStoreError as error:
                log.debug("cannot look for a worker that may run what waits here: %s", error)

    def _wake_all(self, ids: list[str]) -> None:
        _, wake = self._clients()
        for process in ids:
            with self._lock:
                self._ids.pop(process, None)
            wake(process)
