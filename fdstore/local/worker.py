"""The background workers that `fdstore up` and `run` leave running, one for each store and prefix.

A worker locks a file of the data directory while it lives. The lock proves that it runs, and the pid file
beside it names the process; only a process that holds the lock is ever signalled.

    worker.lock  .pid  .log  .json      of the embedded store
    worker@PREFIX.*                     of the embedded store, with another prefix for its keys
    worker-DIGEST.*                     of another store

The .json describes the environment it was started in (see `worker_environment`), so that a command with
another API key, environment or directory detects the difference.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import msgspec

from fdstore.errors import StartFailed, TimedOut
from fdstore.local.data_directory import check_owner, make_private
from fdstore.local.redis_server import is_embedded
from fdstore.local.server_process import wait_until
from fdstore.local.worker_environment import Surroundings
from fdstore.setup.settings import DEFAULT_PREFIX
from fdstore.setup.url_options import shown_url

READY_S = 300.0
"""The time for which a starting worker may run without being ready. Only one that hangs takes so long: the
first start after an installation compiles every import, on a busy machine for more than half a minute."""

STOP_S = 30.0

UNREACHABLE = (FileNotFoundError, NotADirectoryError, PermissionError)
"""What opening a file of a worker raises where this user can have none."""


def worker_command(*options: str, module: str = "fdstore_workers") -> list[str]:
    """Return the command that starts a worker. `-P`: no module is imported from the current directory."""
    return [sys.executable, "-P", "-m", module, *options]


def worker_environment(url: str | None, prefix: str | None) -> dict[str, str]:
    """Return this process's environment plus the worker's store. Not on the command line: every user can read
    it, and the URL may contain a password."""
    named = {"FDSTORE_URL": url, "FDSTORE_PREFIX": prefix}
    return {**os.environ, **{name: value for name, value in named.items() if value}}


class WorkerFiles:
    """The files of one background worker in the data directory."""

    def __init__(self, data_dir: Path, stem: str) -> None:
        self.lock, self.pid_file, self.log, self.json = (
            data_dir / f"{stem}.{ending}" for ending in ("lock", "pid", "log", "json")
        )

    def pid(self) -> int | None:
        """Return the process id of the worker, or None if it does not run."""
        try:
            with self.lock.open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except UNREACHABLE:
            return None
        except BlockingIOError:
            text = self.pid_file.read_text().strip() if self.pid_file.exists() else ""
            return int(text) if text.isdigit() else None
        return None

    def stop(self) -> bool:
        """Shut the worker down. Return whether it ran. Raises `TimedOut`."""
        pid = self.pid()
        if pid is None:
            return False
        os.kill(pid, signal.SIGTERM)
        if not wait_until(lambda: self.pid() is None, STOP_S):
            raise TimedOut(f"the end of the worker {pid}", STOP_S)
        return True


class BackgroundWorker(WorkerFiles):
    """The background worker of a store (URL and key prefix), whether it runs or not."""

    def __init__(self, data_dir: Path, url: str, prefix: str) -> None:
        self._data_dir = data_dir
        self._url = url
        self._prefix = prefix
        super().__init__(data_dir, _stem(url, prefix))

    def differences(self, *, for_functions: bool, variables: Collection[str] = ()) -> list[str]:
        """Return the differences between the running worker's environment and this program's, as text; empty
        if it does not run. `for_functions`: include differences that matter only to Python functions;
        `variables`: those with keys that programs name."""
        if self.pid() is None:
            return []
        try:
            had = msgspec.json.decode(self.json.read_bytes(), type=Surroundings)
        except (*UNREACHABLE, msgspec.MsgspecError):
            return ["it was started by another version of fdstore"]
        return had.differences(Surroundings.here(had.salt), for_functions=for_functions, variables=variables)

    def ensure(self, concurrency: int = 8) -> int:
        """Start the worker if it does not run, and return its process id. Raises `StartFailed` with the end
        of its log if it does not become ready, and for a data directory of another user."""
        running = self.pid()
        if running is not None:
            return running
        make_private(self._data_dir)
        with self.lock.open("ab") as lock, self.log.open("ab") as log:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # another process is starting it
                wait_until(lambda: self.pid() is not None, READY_S)
                return self.pid() or 0
            size = log.tell()
            self.json.write_bytes(msgspec.json.encode(Surroundings.here(os.urandom(16).hex())))
            self.json.chmod(0o600)
            process = subprocess.Popen(
                worker_command("-c", str(concurrency)),
                env=worker_environment(self._url, self._prefix),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                # the worker inherits this descriptor and with it the lock
                pass_fds=[lock.fileno()],
            )
            self.pid_file.write_text(f"{process.pid}\n")
        ready, said = b": ready: ", b""
        try:
            wait_until(lambda: ready in self._log_since(size) or process.poll() is not None, READY_S)
            said = self._log_since(size)
        finally:
            if ready not in said:
                _end(process)
        if ready not in said:
            lines = said.decode("utf-8", "replace").strip().splitlines()[-3:]
            raise StartFailed(
                shown_url(self._url), f"the worker did not start: {' / '.join(lines) or 'no output'}"
            )
        return process.pid

    def _log_since(self, start: int) -> bytes:
        with self.log.open("rb") as log:
            log.seek(start)
            return log.read()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate a worker that did not become ready."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def stop_embedded_workers(data_dir: Path) -> bool:
    """Shut down the background workers of the embedded store, for all prefixes. Return whether any ran.
    Raises `TimedOut`, and `StartFailed` for a data directory of another user."""
    check_owner(data_dir)
    stems = ["worker", *(lock.name.removesuffix(".lock") for lock in sorted(data_dir.glob("worker@*.lock")))]
    ended = [WorkerFiles(data_dir, stem).stop() for stem in stems]
    return any(ended)


def _stem(url: str, prefix: str) -> str:
    if not is_embedded(url):
        return f"worker-{hashlib.sha256(f'{prefix} {url}'.encode()).hexdigest()[:12]}"
    return "worker" if prefix == DEFAULT_PREFIX else f"worker@{prefix}"
