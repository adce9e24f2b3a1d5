"""The thread that moves contents which nobody reads to the object store, beside the sweep.

It runs in every worker, and moves while its worker is the one that sweeps; two that move at once do no harm.
Uploads take long, so they have a thread of their own.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from fdstore.client import Store
from fdstore.errors import FDStoreError
from fdstore.store.cold.moving import Moved, Mover
from fdstore.store.objects.settings import ColdSettings, read_settings
from fdstore.text.quantities import format_count, format_size

log = logging.getLogger("fdstore.cold")

UNSET_PAUSE_S, MIN_PAUSE_S, MAX_PAUSE_S = 15.0, 3.0, 60.0
"""Pauses between turns: without a place for contents, and with one, by how soon contents are due."""

NICE = 10

FAILED_PAUSES_S = (5.0, 15.0, 60.0, 300.0)
"""Pauses after turns that failed one after the other; the last one is repeated."""


def pause_of(settings: ColdSettings) -> float:
    """Return the pause after a turn that went well.

    >>> pause_of(ColdSettings(url="file:///x")), pause_of(ColdSettings(url="file:///x", after_s=1.0))
    (60.0, 3.0)
    """
    if settings.url is None:
        return UNSET_PAUSE_S
    after_s = MAX_PAUSE_S if settings.after_s is None else settings.after_s / 10
    return min(MAX_PAUSE_S, max(MIN_PAUSE_S, after_s))


class ColdMover:
    """A thread with a `Mover`, until it is stopped. `is_sweeping` says whether this worker is the one that
    moves."""

    def __init__(
        self, store: Store, is_sweeping: Callable[[], bool], report: Callable[[str, str], None]
    ) -> None:
        self._store = store
        self._is_sweeping = is_sweeping
        self._report = report
        self._done = threading.Event()
        self._mover = Mover(store, go_on=self._go_on, wait=self._done.wait)
        self._failures = 0
        self._thread = threading.Thread(target=self._keep, name="cold-mover", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after the content that it moves now, or leave that: nothing is lost by it."""
        self._done.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=2.0)

    def _go_on(self) -> bool:
        return not self._done.is_set() and self._is_sweeping()

    def _keep(self) -> None:
        if sys.platform == "linux":  # there of this thread alone: agents come first
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        pause_s = MIN_PAUSE_S
        while not self._done.wait(pause_s):
            pause_s = self._turn() if self._is_sweeping() else MIN_PAUSE_S

    def _turn(self) -> float:
        """Move what is due, and return the pause until the next turn."""
        began = time.monotonic()
        try:
            settings = self._store.run(read_settings(self._store.prefix))
            moved = self._mover.turn() if settings.url is not None else Moved()
        except FDStoreError as error:
            return self._failed(str(error))
        except Exception as error:  # noqa: BLE001 - without its thread nothing would move
            return self._failed(f"{type(error).__name__}: {error}")
        if moved.contents:
            took_s = time.monotonic() - began
            what = f"{format_count(moved.contents, 'content')} with {format_size(moved.bytes)}"
            log.info("%s moved to the object store in %.1f s", what, took_s)
        if moved.problem:
            return self._failed(moved.problem)
        self._failures = 0
        return pause_of(settings)

    def _failed(self, problem: str) -> float:
        self._report("a content that is to move to the object store", problem)
        self._failures += 1
        return FAILED_PAUSES_S[min(self._failures, len(FAILED_PAUSES_S)) - 1]
