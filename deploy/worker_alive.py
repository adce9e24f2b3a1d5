"""The health check of a container: exit with 0 if the worker in it is alive.

    python worker_alive.py PORT      the worker's --metrics-port

It asks for /healthz: the sweeper's thread and the loop that consumes messages moved lately. A worker
that waits for its store is alive: a restart would not help.
"""

from __future__ import annotations

import sys
from http.client import HTTPConnection, HTTPException


def why_dead(port: int, timeout_s: float = 8.0) -> str:
    """Return why the worker that serves this port is not alive; "" if it is."""
    connection = HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        said = answer.read(1000).decode("utf-8", "replace").strip()
    except (OSError, HTTPException) as error:
        return f"no answer from port {port}: {error}"
    finally:
        connection.close()
    return "" if answer.status == 200 else said


def main(arguments: list[str]) -> int:
    why = why_dead(int(arguments[0]))
    if why:
        print(why, file=sys.stderr)
    return 1 if why else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
