"""A whole worker: the Celery application, its task, its sweeper; what `fdstore worker` runs."""

from __future__ import annotations

import logging
import os
import threading
from typing import Any, Literal

from celery import signals

from fdstore.client import connect
from fdstore.toolset import waker
from workers.app import make_app, start_worker
from workers.sweeper import Sweeper
from workers.tasks import Place, runner_of, worker_name

log = logging.getLogger("fdstore.worker")


def work(
    url: str | None,
    prefix: str | None,
    broker_url: str | None,
    *,
    concurrency: int,
    pool: Literal["threads", "prefork"],
    export_root: str | None,
) -> int:
    """Works until TERM; the exit status. Running agents go back to be run elsewhere, at their next
    step.

    Raises `StoreUnavailable`, `UnsafeStore`.
    """
    store = connect(url, prefix)
    stopping = threading.Event()
    place = Place(url=store.url, prefix=store.prefix, export_root=export_root, files_root=os.getcwd())
    app = make_app(store.url, broker_url, run=runner_of(place, stopping), queue=store.prefix)
    sweeper = Sweeper(store, worker_name(), waker(store.url, store.prefix))

    def begin(**_: Any) -> None:
        sweeper.start()

    def stop(**_: Any) -> None:
        stopping.set()

    signals.worker_ready.connect(begin, dispatch_uid="fdstore sweeper")
    signals.worker_shutting_down.connect(stop, dispatch_uid="fdstore stopping")
    try:
        return start_worker(app, concurrency, pool)
    finally:
        sweeper.stop()
        store.close()
