"""Sending wake-ups to the workers of a store."""

from __future__ import annotations

from collections.abc import Callable

from fdstore import settings
from fdstore.errors import FDStoreError
from fdstore.loading import QUEUE, require


def waker(store_url: str, prefix: str, broker_url: str | None = None) -> Callable[[str], None]:
    """Sends wake-ups to the workers of a store, through `broker_url` or `$FDSTORE_BROKER_URL` if that is
    not in the store's Redis; the connection is made when the first is sent. One that cannot be sent is
    no error: the workers' sweep finds the process.

    Raises `InvalidArgument` for a URL that cannot be a queue's, as that of a Cluster, and `MissingExtra`."""
    require(QUEUE)
    from fdstore.runtime.queue import Dispatcher, find_broker

    broker = broker_url or settings.read().broker_url
    find_broker(store_url, broker)
    made: list[Dispatcher] = []

    def wake(process: str) -> None:
        if not made:
            made.append(Dispatcher(store_url, broker, prefix=prefix))
        try:
            made[0].wake(process)
        except FDStoreError:
            return

    return wake
