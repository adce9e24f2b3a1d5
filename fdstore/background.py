"""The worker that `fdstore up` leaves running beside the embedded server.

It holds a lock on a file of the data directory as long as it lives: the lock says that it runs, the
pid beside it says which process to end, and only a process that holds the lock is ever signalled.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from fdstore.errors import StartFailed, TimedOut
from fdstore.store.server_process import wait_until

READY_S = 30.0
STOP_S = 30.0


class BackgroundWorker:
    """The one background worker of a data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._lock = data_dir / "worker.lock"
        self._pid = data_dir / "worker.pid"
        self.log = data_dir / "worker.log"

    def pid(self) -> int | None:
        """Its process id, or None when it does not run."""
        try:
            with self._lock.open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return None
        except BlockingIOError:
            text = self._pid.read_text().strip() if self._pid.exists() else ""
            return int(text) if text.isdigit() else None
        return None

    def ensure(self, url: str, prefix: str, concurrency: int = 8) -> int:
        """Its process id, started if it does not run. Raises `StartFailed` with the end of its
        log when it does not come up."""
        running = self.pid()
        if running is not None:
            return running
        with self._lock.open("ab") as lock, self.log.open("ab") as log:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # somebody else starts it at this moment
                wait_until(lambda: self.pid() is not None, READY_S)
                return self.pid() or 0
            size = log.tell()
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "fdstore_workers", "-c", str(concurrency)],
                env={**os.environ, "FDSTORE_URL": url, "FDSTORE_PREFIX": prefix},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                # the lock goes on with the copy of this descriptor in the worker
                pass_fds=[lock.fileno()],
            )
            self._pid.write_text(f"{process.pid}\n")
        ready = b": ready: "
        until = time.monotonic() + READY_S
        while ready not in self._said(size):
            if process.poll() is not None or time.monotonic() > until:
                said = self._said(size).decode("utf-8", "replace").strip().splitlines()[-3:]
                raise StartFailed(url, f"the worker did not start: {' / '.join(said) or 'no word'}")
            wait_until(lambda: ready in self._said(size) or process.poll() is not None, 1.0)
        return process.pid

    def _said(self, start: int) -> bytes:
        with self.log.open("rb") as log:
            log.seek(start)
            return log.read()

    def stop(self) -> bool:
        """Ends it in good order; whether it ran. Raises `TimedOut` when it does not end."""
        pid = self.pid()
        if pid is None:
            return False
        os.kill(pid, signal.SIGTERM)
        if not wait_until(lambda: self.pid() is None, STOP_S):
            raise TimedOut(f"the end of the worker {pid}", STOP_S)
        return True
