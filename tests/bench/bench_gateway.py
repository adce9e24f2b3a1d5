"""What the gateway adds to a small call of a tool, beside a bare relay that only copies bytes.

    python tests/bench/bench_gateway.py

The three take turns, so that a busy machine slows them all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from statistics import median
from time import perf_counter

from fdstore.local.redis_server import PrivateServer

UPSTREAM = [sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "mcp_upstream.py")]
CALLS = 500
ROUNDS = 5
BAR_MS = 2.0


def relay_bare() -> None:
    """Copy bytes between this process and the server."""

    def copy(source: int, target: int) -> None:
        while chunk := os.read(source, 65536):
            os.write(target, chunk)
        os.close(target)

    server = subprocess.Popen(UPSTREAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert server.stdin is not None
    assert server.stdout is not None
    back = threading.Thread(target=copy, args=(server.stdout.fileno(), 1))
    back.start()
    target = os.dup(server.stdin.fileno())
    server.stdin.close()
    copy(0, target)
    back.join()


class Client:
    """A host that calls a tool and waits for the answer."""

    def __init__(self, *command: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        self.times: list[float] = []
        self.call()
        self.times.clear()

    def call(self) -> None:
        params = {"name": "echo", "arguments": {"text": "a small result"}}
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        begun = perf_counter()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        self.process.stdout.readline()
        self.times.append((perf_counter() - begun) * 1000)

    def close(self) -> None:
        self.process.communicate()


def main() -> int:
    with PrivateServer() as store:
        gateway = [sys.executable, "-m", "fdstore", "gateway", "--process", "bench", "--", *UPSTREAM]
        clients = {
            "no relay": Client(*UPSTREAM),
            "bare relay": Client(sys.executable, __file__, "--bare"),
            "fdstore gateway": Client(*gateway, FDSTORE_URL=store.url),
        }
        for _ in range(ROUNDS):
            for client in clients.values():
                for _ in range(CALLS // ROUNDS):
                    client.call()
        for client in clients.values():
            client.close()
    for name, client in clients.items():
        ninety_ninth = sorted(client.times)[int(len(client.times) * 0.99)]
        middle = median(client.times)
        print(f"{name:16} {len(client.times)} calls, median {middle:.3f} ms, p99 {ninety_ninth:.3f} ms")
    added = median(clients["fdstore gateway"].times) - median(clients["bare relay"].times)
    print(f"added by the gateway to a bare relay: {added:.3f} ms (bar: {BAR_MS} ms)")
    return added > BAR_MS


if __name__ == "__main__":
    if "--bare" in sys.argv:
        relay_bare()
    else:
        sys.exit(main())
