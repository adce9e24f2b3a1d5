"""The cost of the gateway for a small call of a tool, beside a bare relay that only copies bytes; and that of
a result of 100 MiB on each path: seconds, memory, and how long others wait for the gateway meanwhile.

    PYTHONPATH=. python tests/bench/bench_gateway.py

The three of the small call take turns, so that a busy machine slows them all.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

import httpx2

from fdstore.local.redis_server import PrivateServer
from tests.bench.bench_code import peak_mib
from tests.mcp_http_upstream import Upstream, served

UPSTREAM = [sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "mcp_upstream.py")]
CALLS = 500
ROUNDS = 5
BAR_MS = 2.0
LARGE_MIB = 100
MOST_TIMES, MOST_WAIT_MS = 2.5, 50
LARGE_ROUNDS = 3
PING_EVERY_S = 0.01


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


def called(tool: str, **arguments: object) -> dict[str, object]:
    return {
        "jsonrpc": "2.0",
        "id": tool,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }


Ask = Callable[[dict[str, object]], None]
"""Sends a request, and returns when its answer is there."""


@contextmanager
def gateway_by_stdio(store_url: str, server: list[str]) -> Iterator[tuple[int, Ask]]:
    """A gateway for a host on standard input: its pid, and how to ask it."""
    command = [sys.executable, "-m", "fdstore", "gateway", "--process", "bench", *server]
    environment = {**os.environ, "FDSTORE_URL": store_url}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        answered: dict[object, threading.Event] = {}
        writing = threading.Lock()

        def read() -> None:
            for line in process.stdout:
                answered[json.loads(line)["id"]].set()

        def ask(message: dict[str, object]) -> None:
            arrived = answered[message["id"]] = threading.Event()
            with writing:
                process.stdin.write(json.dumps(message).encode() + b"\n")
                process.stdin.flush()
            arrived.wait()

        reader = threading.Thread(target=read)
        reader.start()
        yield process.pid, ask
        process.stdin.close()
        reader.join()


@contextmanager
def gateway_by_http(store_url: str, upstream_url: str) -> Iterator[tuple[int, Ask]]:
    """A gateway for hosts that speak HTTP: its pid, and how to ask it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--http", upstream_url, "--listen", f"127.0.0.1:{port}"]
    command = [sys.executable, "-m", "fdstore", "gateway", "--process", "bench", *options]
    environment = {**os.environ, "FDSTORE_URL": store_url}
    headers = {"Accept": "application/json, text/event-stream"}
    with (
        httpx2.Client(headers=headers, timeout=120) as client,
        subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process,
    ):

        def ask(message: dict[str, object]) -> None:
            client.post(f"http://127.0.0.1:{port}/mcp", json=message).raise_for_status()

        while process.poll() is None:
            try:
                ask(called("list_fds"))
                break
            except httpx2.TransportError:
                sleep(0.05)
        yield process.pid, ask
        process.terminate()


def measure_large(name: str, pid: int, ask: Ask, tool: str) -> bool:
    """Print what large results cost on a path. Return whether a bar is missed."""
    ask(called("list_fds"))
    ask(called(tool, count=1))
    idle, seconds, waits = peak_mib(pid), [], []
    for _ in range(LARGE_ROUNDS):
        begun = perf_counter()
        large = threading.Thread(target=ask, args=(called(tool, count=LARGE_MIB),))
        large.start()
        while large.is_alive():
            asked = perf_counter()
            ask(called("list_fds"))
            waits.append((perf_counter() - asked) * 1000)
            large.join(PING_EVERY_S)
        seconds.append(perf_counter() - begun)
    times = peak_mib(pid) / LARGE_MIB
    late = sorted(waits)[int(len(waits) * 0.99)]
    print(
        f"{name:24} {median(seconds):.2f} s, peak {times:.2f} times its size (idle {idle:.0f} MiB)", end="; "
    )
    print(f"others waited {median(waits):.1f} ms, p99 {late:.0f}, longest {max(waits):.0f}")
    return times - idle / LARGE_MIB > MOST_TIMES or max(waits) > MOST_WAIT_MS


def main_large() -> int:
    missed = False
    with PrivateServer() as store, served(Upstream()) as url:
        with gateway_by_stdio(store.url, ["--", *UPSTREAM]) as (pid, ask):
            missed |= measure_large("stdio", pid, ask, "megabytes")
        for tool, kind in (("megabytes", "JSON"), ("megabytes_stream", "SSE")):
            with gateway_by_stdio(store.url, ["--http", url]) as (pid, ask):
                missed |= measure_large(f"stdio before HTTP, {kind}", pid, ask, tool)
            with gateway_by_http(store.url, url) as (pid, ask):
                missed |= measure_large(f"HTTP, {kind}", pid, ask, tool)
    return missed


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
        sys.exit(main() | main_large())
