"""Wake the workers of a store for processes that became ready."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from fdstore.client import Store
from fdstore.errors import FDStoreError, InvalidArgument, MissingExtra
from fdstore.model.people import GivenAnswer, PersonAnswer
from fdstore.setup import settings
from fdstore.setup.optional_packages import QUEUE, require
from fdstore.store.processes import people


def waker(store_url: str, prefix: str, broker_url: str | None = None) -> Callable[[str], None]:
    """Return a function that wakes the workers of a store for a process id.

    The queue is at `broker_url`, else `$FDSTORE_BROKER_URL`, else in the store's Redis; the first call
    connects. A wake-up that cannot be sent is not an error: the sweeper finds the process.

    Raises `InvalidArgument` for a URL that cannot hold a queue, such as that of a Cluster; `MissingExtra`.
    """
    require(QUEUE)
    from fdstore.agents.runtime.broker_url import find_broker
    from fdstore.agents.runtime.queue import Dispatcher

    broker = broker_url or settings.read().broker_url
    find_broker(store_url, broker)
    dispatchers: list[Dispatcher] = []

    def wake(process: str) -> None:
        if not dispatchers:
            dispatchers.append(Dispatcher(store_url, broker, prefix=prefix))
        try:
            dispatchers[0].wake(process)
        except FDStoreError:
            return

    return wake


def wake_all(store: Store, ready: Iterable[str]) -> None:
    """Wake the workers for these processes. Without a queue, their sweep finds them within some seconds."""
    found = list(ready)
    if found:
        with suppress(InvalidArgument, MissingExtra):
            wake = waker(store.url, store.prefix)
            for process in found:
                wake(process)


def answer_and_wake(store: Store, process: str, given: GivenAnswer) -> PersonAnswer:
    """Answer a question of an agent, and wake a worker for it. Raises as `Store.answer`."""
    done = store.run(people.answer(store.prefix, process, given))
    wake_all(store, [process] if done.wakes else [])
    return done.answer
