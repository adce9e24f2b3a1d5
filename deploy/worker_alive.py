"""Whether the worker on this host is alive: exit status 0 if so. What a container's health check runs.

A worker says in Redis every 3 seconds, and for the next 10, that it lives, from the thread that also
sweeps; its name is `host:pid`. A process that hangs, or has lost Redis, says nothing. In a container
the host's name is the container's, so this finds the worker of this container and no other.
"""

from __future__ import annotations

import socket
import sys

import fdstore
from fdstore.errors import FDStoreError
from fdstore.store import leases


def is_alive(host: str) -> bool:
    """Whether a worker of this host has lately said so in Redis. Raises `FDStoreError`."""
    with fdstore.connect() as store:
        living = store.run(leases.workers(store.prefix))
    return any(worker.rpartition(":")[0] == host for worker in living)


def main() -> int:
    try:
        if is_alive(socket.gethostname()):
            return 0
    except FDStoreError as error:
        print(f"{error.type}: {error}", file=sys.stderr)
        return 1
    print("no worker of this host has said that it lives", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
