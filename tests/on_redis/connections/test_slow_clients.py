"""Every command that serves HTTP, as a process: slow and many clients keep nobody out, and do not hold it."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.children import Child
from tests.conftest import children_of
from tests.thorough import thorough
from tests.waiting import PATIENCE_S, wait_until

COMMANDS = {
    "ui": ["ui"],
    "mcp": ["mcp", "--process", "p", "--http", "127.0.0.1:0"],
    "gateway": ["gateway", "--process", "p", "--http", "http://127.0.0.1:9/mcp", "--listen", "127.0.0.1:0"],
    "worker": ["worker", "-c", "1", "--metrics-port", "0", "--sandbox", "off"],
}
END_S = 20
"""The time that a server may take to end, on a busy machine: less than the 30 s of a client's request."""

UNFINISHED = [
    b"",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-More: ",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
]


def first(name: str) -> list[object]:
    """Return this command, and the others for `make test-all`: they serve alike."""
    return [name, *thorough("the same server", *(other for other in COMMANDS if other != name))]


class Server:
    """A running command, the port that it announced, and what it logs."""

    def __init__(self, name: str, process: Child[bytes], log: Path) -> None:
        self.name, self.process, self._log = name, process, log
        self.slow: list[socket.socket] = []
        self._ended = threading.Event()
        self._dripping = threading.Thread(target=self._drip, daemon=True)
        self._dripping.start()
        wait_until(lambda: self._announced() or process.poll() is not None, what="the start")
        port = self._announced()
        assert port, self.log
        self.address = ("127.0.0.1", int(port[1]))
        if name == "worker":
            wait_until(lambda: "ready: " in self.log, what="a worker that takes messages")
        if name == "gateway":
            self._connect_the_store()

    def _announced(self) -> re.Match[str] | None:
        return re.search(r"http://127\.0\.0\.1:(?!9/)(\d+)", self.log)

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def _connect_the_store(self) -> None:
        call = b'{"id": 1, "method": "tools/call", "params": {"name": "list_fds", "arguments": {}}}'
        head = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        head += f"Content-Length: {len(call)}\r\n\r\n"
        with self.connect(head.encode() + call) as client, client.makefile("rb") as answer:
            assert any(b"fd_list" in line for line in answer)

    @property
    def pid(self) -> int:
        """The process that serves."""
        return children_of(self.process.pid)[0] if self.name == "worker" else self.process.pid

    def connect(self, sent: bytes) -> socket.socket:
        client = socket.create_connection(self.address, timeout=PATIENCE_S)
        client.sendall(sent)
        return client

    def add_slow_clients(self, count: int) -> None:
        self.slow += [self.connect(UNFINISHED[number % len(UNFINISHED)]) for number in range(count)]

    def _drip(self) -> None:
        """Let each slow client send a byte now and then, so that its connection is never idle for long."""
        while not self._ended.wait(0.5):
            for client in self.slow:
                with suppress(OSError):
                    client.send(b"x", socket.MSG_DONTWAIT)

    def end(self) -> None:
        self._ended.set()
        self._dripping.join()
        for client in self.slow:
            client.close()

    def answers(self) -> bool:
        """Return whether a request gets a response. The host is not ours, so the gateway asks no server."""
        path, host = ("/healthz", "127.0.0.1") if self.name == "worker" else ("/", "example.org")
        with self.connect(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()) as client:
            return client.recv(9) == b"HTTP/1.1 "


@pytest.fixture
def serve(redis_url: str, tmp_path: Path) -> Callable[..., object]:
    @contextmanager
    def serve(name: str, **environ: str) -> Iterator[Server]:
        log = tmp_path / "log.txt"
        command = [sys.executable, "-P", "-m", "fdstore", *COMMANDS[name], "--url", redis_url]
        if name == "gateway":
            environ["FDSTORE_URL"], command = redis_url, command[:-2]
        with log.open("wb") as output:
            process = Child(
                command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **environ}, cwd=tmp_path
            )
        try:
            server = Server(name, process, log)
            try:
                yield server
            finally:
                server.end()
        finally:
            process.end()

    return serve


@pytest.mark.thorough("a bound of time")
@pytest.mark.parametrize("name", first("worker"))
def test_slow_clients_keep_no_one_out_and_are_disconnected(name: str, serve) -> None:
    limits = {"FDSTORE_HTTP_CONNECTIONS": "16", "FDSTORE_HTTP_REQUEST_S": "1"}
    with serve(name, **limits) as server:
        server.add_slow_clients(40)

        assert server.answers()
        for client in server.slow:
            assert is_closed(client)
        assert len(server.log.splitlines()) < 20


def is_closed(client: socket.socket) -> bool:
    """Wait until the server closes the connection. Fails with a time-out if it does not."""
    try:
        while client.recv(4096):
            pass
    except ConnectionResetError:
        pass
    return True


@pytest.mark.parametrize("name", first("ui"))
def test_a_signal_ends_a_server_whatever_its_clients_do(name: str, serve) -> None:
    with serve(name) as server:
        server.add_slow_clients(40)

        server.process.send_signal(signal.SIGTERM)

        server.process.wait(END_S)
        assert "Traceback" not in server.log, server.log


@pytest.mark.thorough("hundreds of connections")
@pytest.mark.parametrize("name", first("mcp"))
def test_a_server_without_free_file_descriptors_serves_on(name: str, serve) -> None:
    with serve(name) as server:
        assert server.answers()
        open_files = len(os.listdir(f"/proc/{server.pid}/fd"))
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (open_files + 8, open_files + 8))
        server.add_slow_clients(40)

        assert server.answers()

        lines = server.log.splitlines()
        assert sum("oo many open files" in line for line in lines) == 1, server.log
        assert len(lines) < 20
