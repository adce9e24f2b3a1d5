"""The health check of a container: exit with 0 if the worker on this host is alive.

The sweeper thread of a worker registers it in Redis every 3 seconds for the next 10, under the name
`host:pid`. A process that hangs or has lost Redis does not. In a container the host name is the container's,
so this checks the worker of this container only.
"""

from __future__ import annotations

import socket
import sys

import fdstore
from fdstore.errors import FDStoreError
from fdstore.store import worker_registry


def is_alive(host: str) -> bool:
    """Return whether a worker of this host is registered in Redis. Raises `FDStoreError`."""
    with fdstore.connect() as store:
        workers = store.run(worker_registry.workers(store.prefix))
    return any(worker.rpartition(":")[0] == host for worker in workers)


def main() -> int:
    try:
        if is_alive(socket.gethostname()):
            return 0
    except FDStoreError as error:
        print(f"{error.type}: {error}", file=sys.stderr)
        return 1
    print("no worker of this host is registered in the store", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
