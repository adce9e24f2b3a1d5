"""Stores that are away: servers that take connections and do not serve, or hang, and the time that passes."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

from fdstore.local.redis_server import PrivateServer

LOADING = b"-LOADING Redis is loading the dataset in memory\r\n"


def advance(store: Any, seconds: float) -> None:
    """Move the clock by which a store with patience decides when to try again."""
    breaker = store._runner._breaker
    clock = breaker._clock
    breaker._clock = lambda: clock() + seconds


@contextmanager
def stopped(server: PrivateServer) -> Iterator[None]:
    """Have a server hang during the block."""
    assert server.pid is not None
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


class SilentServer:
    """A server on this machine that takes connections, reads what is sent, and answers each piece with
    `answer`: by default nothing. `connections` counts what it took."""

    def __init__(self, answer: bytes = b"") -> None:
        self.connections = 0
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._taken: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._take, daemon=True)]
        self._threads[0].start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    @property
    def url(self) -> str:
        return f"redis://{self.address}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in (self._socket, *self._taken):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()

    def _take(self) -> None:
        with suppress(OSError):
            while True:
                taken, _ = self._socket.accept()
                self.connections += 1
                self._taken.append(taken)
                reading = threading.Thread(target=self._read, args=(taken,), daemon=True)
                self._threads.append(reading)
                reading.start()

    def _read(self, taken: socket.socket) -> None:
        with suppress(OSError):
            while taken.recv(65536):
                if self._answer:
                    taken.sendall(self._answer)
