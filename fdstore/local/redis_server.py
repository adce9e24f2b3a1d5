"""The redis-servers that fdstore runs itself: the user's embedded one, and private ones.

`EmbeddedServer` is the default store of a user who configured nothing: every command finds it through its
socket, the first one starts it, and it is left running for the next. However many commands start at the same
time, one starts it; the others wait for a file lock.

`PrivateServer` belongs to one test or benchmark: a server of its own that can be killed and restarted, and
whose directory is removed at the end.

`redis_conf` chooses the binary and the settings; `server_process` starts, identifies and stops a process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from fdstore.errors import StartFailed, TimedOut
from fdstore.local.data_directory import check_owner, make_private
from fdstore.local.server_process import LOADING_DEADLINE_S, START_DEADLINE_S, ServerProcess, wait_until
from fdstore.model.records import Record
from fdstore.setup import settings
from fdstore.store.keys import check_prefix
from fdstore.wire.server_info import software, software_version


class ServerStatus(Record, frozen=True, kw_only=True):
    """Status of the embedded server. `pid` is None when it is not running; the fields after `loading` also
    while it loads its data, and when it does not answer."""

    running: bool
    pid: int | None
    url: str
    data_dir: str
    loading: bool = False
    software: str | None = None
    version: str | None = None
    program: str | None = None
    used_memory_bytes: int | None = None
    uptime_s: int | None = None
    aof_enabled: bool | None = None


class EmbeddedServer:
    """The server of a data directory.

    `runtime_dir` holds a symbolic link to its socket if the path of `data_dir` is too long for a socket
    address (default: $XDG_RUNTIME_DIR, else the temporary directory). `binary` is the server to run
    (default: the one that `find_binary` finds).

    >>> server = EmbeddedServer(Path("/home/ann/.local/share/fdstore"))
    >>> server.url                                                    # after `server.ensure()`
    'unix:///home/ann/.local/share/fdstore/redis.sock'
    """

    def __init__(
        self, data_dir: Path, *, runtime_dir: Path | None = None, binary: Path | None = None
    ) -> None:
        self.data_dir = data_dir.resolve()
        self._process = ServerProcess(
            self.data_dir, binary=binary, runtime_dir=runtime_dir or settings.read().runtime_dir
        )

    def ensure(self) -> str:
        """Start the server if it is not running, wait until it serves, and return its URL.

        Waits for a server that is loading its data: 30 s for a sign of life, 10 minutes in all. Raises
        `StartFailed` with the last lines of its log, and for a directory of another user.
        """
        check_owner(self.data_dir)
        if self._process.condition() == "ready":
            return self._process.url
        try:
            make_private(self.data_dir)
            with self._start_lock(LOADING_DEADLINE_S + START_DEADLINE_S):
                if self._process.condition() == "absent" or not self._process.becomes_ready():
                    # It may run although its socket is gone (a cleaner of temporary files) or its starter
                    # died half-way: two servers would corrupt one log.
                    self._process.stop(START_DEADLINE_S)
                    self._process.start()
        except OSError as error:
            problem = f"the data directory cannot be used: {error.strerror or error}; set FDSTORE_DATA_DIR"
            raise StartFailed(str(self.data_dir), problem) from error
        return self._process.url

    @property
    def url(self) -> str:
        """Its URL, whether it runs or not."""
        return self._process.url

    def status(self) -> ServerStatus:
        """Return its current status, without starting it."""
        import redis

        condition = self._process.condition()
        running = condition != "absent"
        status = ServerStatus(
            running=running,
            pid=self._process.pid() if running else None,
            url=self._process.url,
            data_dir=str(self.data_dir),
            loading=condition == "loading",
        )
        if not running:
            return status
        try:
            with self._process.client() as client:
                info = client.info()
        except redis.RedisError:
            return status
        return replace(
            status,
            pid=info["process_id"],
            software=software(info),
            version=software_version(info),
            program=info.get("executable"),
            used_memory_bytes=info["used_memory"],
            uptime_s=info["uptime_in_seconds"],
            aof_enabled=bool(info["aof_enabled"]),
        )

    def stop(self, timeout_s: float = 10) -> bool:
        """Shut the server down with its data on disk. Return False if it did not run.

        Raises `TimedOut` if it has not ended after `timeout_s` seconds; it is never killed. Raises
        `StartFailed` for a directory of another user.
        """
        check_owner(self.data_dir)
        if not self.data_dir.exists():
            return False
        with self._start_lock(timeout_s):
            return self._process.stop(timeout_s)

    @contextlib.contextmanager
    def _start_lock(self, timeout_s: float) -> Iterator[None]:
        """Hold the lock for starting and stopping this server. The kernel releases it if the holder dies."""
        try:
            file = (self.data_dir / "start.lock").open("ab")
        except OSError as error:
            raise StartFailed(str(self.data_dir), str(error)) from error
        with file as lock:

            def locked() -> bool:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
                return True

            if not wait_until(locked, timeout_s):
                raise TimedOut(f"the lock to start or stop the server in {self.data_dir}", timeout_s)
            yield


class PrivateServer:
    """A redis-server in a temporary directory, on a unix socket, removed with its files at the end.

    `options` replace or extend the lines of redis.conf; unlike the embedded server's, its data is only in
    memory unless they include `{"appendonly": "yes"}`. With `port=True` clients connect by TCP to a free
    port of 127.0.0.1. Directory, port and URL survive `kill`, `stop` and `restart`.

    >>> with PrivateServer({"appendonly": "yes", "appendfsync": "always"}) as server:
    ...     server.kill()
    ...     server.restart()
    """

    def __init__(
        self,
        options: Mapping[str, str | int] | None = None,
        *,
        port: bool = False,
        binary: Path | None = None,
    ) -> None:
        # the directory belongs to the object, not to its `with` block, which may be entered repeatedly
        self._folder = tempfile.TemporaryDirectory(prefix="fdstore-", ignore_cleanup_errors=True)
        self.directory = Path(self._folder.name).resolve()
        self._reserved = _reserve_port() if port else None
        ports = {"port": self._reserved.getsockname()[1], "bind": "127.0.0.1"} if self._reserved else {}
        self._process = ServerProcess(
            self.directory, options={"appendonly": "no", **ports, **(options or {})}, binary=binary
        )
        self.url = f"redis://127.0.0.1:{ports['port']}/0" if ports else self._process.url

    @property
    def pid(self) -> int | None:
        """Its process id, or None while it does not run."""
        return self._process.pid()

    def start(self) -> None:
        """Start it, unless it runs."""
        if self._process.condition() == "absent":
            self._process.start()

    def stop(self, timeout_s: float = 10) -> bool:
        """Shut it down. Return False if it did not run. Raises `TimedOut`."""
        return self._process.stop(timeout_s)

    def kill(self) -> None:
        """End it with SIGKILL, like a crash."""
        self._process.kill()

    def restart(self) -> None:
        """Shut it down if it runs, and start it on the same directory."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Kill it and remove its directory. The object cannot be used afterwards."""
        self._process.kill()
        if self._reserved:
            self._reserved.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def resolve_store(url: str | None, prefix: str | None) -> tuple[str, str]:
    """Resolve URL and prefix of a store: arguments, then environment, then the embedded server, which is
    started if needed. Raises `InvalidArgument`, `StartFailed`."""
    found = settings.read()
    prefix = check_prefix(prefix or found.prefix)
    return url or found.url or EmbeddedServer(found.data_dir).ensure(), prefix


def is_embedded(url: str) -> bool:
    """Return whether `url` is that of the embedded server, in a directory that only this user can enter."""
    server = EmbeddedServer(settings.read().data_dir)
    try:
        found = server.data_dir.stat()
        return found.st_uid == os.getuid() and not found.st_mode & 0o077 and server.url == url
    except (OSError, StartFailed):
        return False


def _reserve_port() -> socket.socket:
    """Reserve a free port of 127.0.0.1, also for the time while the server is down.

    The socket is bound and does not listen, with SO_REUSEADDR like the server's: the server can listen on the
    port, and the kernel assigns it to no other socket, not even to a reconnecting client, which could
    otherwise connect to itself.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved
