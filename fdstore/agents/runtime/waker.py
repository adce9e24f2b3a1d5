"""Create the function that wakes the workers of a store."""

from __future__ import annotations

from collections.abc import Callable

from fdstore.errors import FDStoreError
from fdstore.setup import settings
from fdstore.setup.optional_packages import QUEUE, require


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
