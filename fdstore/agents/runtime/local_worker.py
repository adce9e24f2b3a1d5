"""Start the background worker of a store when something needs one, or replace it.

A worker runs agents in its own environment: with its key, its model and its proxy. So whoever starts agents
looks whether these are its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from threading import Lock

from fdstore.client import Store, connect
from fdstore.local.redis_server import is_embedded
from fdstore.local.worker import BackgroundWorker
from fdstore.setup import settings
from fdstore.store.views import worker_check

log = logging.getLogger("fdstore.worker")

MAX_MISFITS = 5
"""The maximum number of differences to list."""

Say = Callable[[str], None]


def background_worker(url: str, prefix: str) -> BackgroundWorker:
    """Return the background worker of this user for a store, running or not."""
    return BackgroundWorker(settings.read().data_dir, url, prefix)


def renew_if_idle(
    store: Store,
    background: BackgroundWorker,
    *,
    for_functions: bool,
    say: Say,
    variables: Collection[str] = (),
) -> None:
    """Stop a background worker whose API key, environment or directory differs from this program's, so that
    the next one has the same. While processes run or wait, only warn. `variables` have keys that programs
    name."""
    others = _misfits(background, for_functions, variables)
    if not others:
        return
    pid = background.pid()
    members = [member for tree in store.survey().trees for member in tree.members]
    if any(member.state in ("running", "waiting") for member in members):
        _say_misfits(pid, others, say)
        return
    say(f"the background worker (pid {pid}) was started elsewhere ({others}): starting another")
    background.stop()


def warn_of_misfits(
    background: BackgroundWorker, *, for_functions: bool, say: Say, variables: Collection[str] = ()
) -> None:
    """Warn if the environment of a background worker differs from this program's."""
    if others := _misfits(background, for_functions, variables):
        _say_misfits(background.pid(), others, say)


def _misfits(background: BackgroundWorker, for_functions: bool, variables: Collection[str]) -> str:
    found = background.differences(for_functions=for_functions, variables=variables)
    more = [f"and {len(found) - MAX_MISFITS} more"] if len(found) > MAX_MISFITS else []
    return "; ".join(found[:MAX_MISFITS] + more)


def _say_misfits(pid: int | None, others: str, say: Say) -> None:
    say(
        f"the background worker (pid {pid}) is at work and was started elsewhere: {others}. Spawned "
        "agents run in its environment; `fdstore down` and `fdstore up` replace it after that work"
    )


def ensure_worker(store_url: str, prefix: str) -> None:
    """Start the background worker of the embedded store, unless a worker of any kind lives; replace one of
    another environment that is idle. A store given by URL is left to its operator. Raises `StartFailed`."""
    if not is_embedded(store_url):
        return
    background = background_worker(store_url, prefix)
    with connect(store_url, prefix) as store:
        renew_if_idle(store, background, for_functions=False, say=log.warning)
        if background.pid() or not store.run(worker_check.no_worker(prefix, for_agents=False)):
            return
    background.ensure()


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
