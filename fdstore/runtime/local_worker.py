"""Start a worker for the embedded store when something needs one."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from fdstore import settings
from fdstore.client import connect
from fdstore.local.redis_server import is_embedded
from fdstore.local.worker import BackgroundWorker
from fdstore.store.views import worker_check


def ensure_worker(store_url: str, prefix: str) -> None:
    """Start the background worker of the embedded store, unless a worker of any kind lives. A store given by
    URL is left to its operator. Raises `StartFailed`."""
    if not is_embedded(store_url):
        return
    with connect(store_url, prefix) as store:
        if not store.run(worker_check.no_worker(prefix, for_agents=False)):
            return
    BackgroundWorker(settings.read().data_dir, store_url, prefix).ensure()


def after_ensuring_worker(store_url: str, prefix: str, wake: Callable[[str], None]) -> Callable[[str], None]:
    """Return `wake`, whose first call ensures a worker first."""
    lock, is_ensured = Lock(), False

    def ensure_and_wake(process: str) -> None:
        nonlocal is_ensured
        with lock:
            if not is_ensured:
                ensure_worker(store_url, prefix)
                is_ensured = True
        wake(process)

    return ensure_and_wake
