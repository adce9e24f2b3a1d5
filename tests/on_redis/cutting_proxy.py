"""A proxy before Redis that swallows replies and closes connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.waiting import PATIENCE_S


class Proxy:
    """A proxy between client and Redis that loses replies.

    `lose(times, marker)` forwards the next requests that contain the marker, waits for their replies, and
    disconnects instead of forwarding those. `lead_to(redis_url)` sends later connections to another server.
    """

    def __init__(self, redis_url: str, folder: Path) -> None:
        self.lead_to(redis_url)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "proxy.sock"))
        self._listener.listen()
        self.url = f"unix://{folder}/proxy.sock"
        self.lost = 0
        self._left = 0
        self._marker = b""
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def lead_to(self, redis_url: str) -> None:
        self._redis = redis_url.removeprefix("unix://").partition("?")[0]

    def lose(self, times: int, marker: bytes = b"EVAL") -> None:
        with self._lock:
            self._left, self._marker = times, marker

    def hang_up(self) -> None:
        """Close all open connections."""
        for end in self._sockets:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._redis)
            doomed = threading.Event()
            for source, target, note in (
                (client, server, self._see(doomed)),
                (server, client, self._pass(doomed)),
            ):
                thread = threading.Thread(target=self._pump, args=(source, target, note), daemon=True)
                thread.start()
                self._threads.append(thread)
            self._sockets += [client, server]

    def _see(self, doomed: threading.Event) -> Callable[[bytes], bool]:
        def see(data: bytes) -> bool:
            with self._lock:
                if self._left and self._marker in data:
                    doomed.set()
            return True

        return see

    def _pass(self, doomed: threading.Event) -> Callable[[bytes], bool]:
        def may_pass(data: bytes) -> bool:
            if not doomed.is_set():
                return True
            with self._lock:
                self._left -= 1
                self.lost += 1
            return False

        return may_pass

    def _pump(self, source: socket.socket, target: socket.socket, note: Callable[[bytes], bool]) -> None:
        try:
            while (data := source.recv(1 << 16)) and note(data):
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        for end in self._sockets:
            end.close()
