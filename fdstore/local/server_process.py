"""Start, identify and stop the redis-server of one directory.

The directory holds all its files, under fixed names:

    redis.conf   rewritten at every start, each line with its reason
    redis.sock   the only way to connect (a private server may add a TCP port)
    redis.pid    written by the server itself
    redis.log    its log, and the loader's message if the binary cannot be run
    appendonly*  the data

Two things are hard. First, telling our server from a stranger that reuses its process id: the process title
stays its command line, which contains the path of redis.conf, and nothing else is ever signalled. Second, a
log torn by a crash: Redis truncates it while loading, but an open MULTI left in it swallows later writes, so
the start after next brings scripts back half applied.
So a torn log is refused (`aof-load-truncated no`), repaired by a server on a socket that clients do not know
(load the intact part, rewrite the log from memory, shut down), and only then served. Undamaged data skips
this. A server that answers at redis.sock always has sound data, on Redis 6.2 (one appendonly.aof) as on 7
(appendonlydir/).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from fdstore.errors import StartFailed, TimedOut
from fdstore.local.redis_conf import find_binary, render_config, unreadable_reason

if TYPE_CHECKING:
    import redis

START_DEADLINE_S = 30.0
"""The time for which a starting server may not listen or not answer."""
LOADING_DEADLINE_S = 600.0
"""The time that it may load its data while it answers with LOADING."""
ANSWER_DEADLINE_S = 2.0
POLL_S = 0.01
ADDRESS_BYTES = 103
"""The longest path that fits a socket address: 103 bytes on macOS, 107 on Linux."""
LOG_LINES_SHOWN = 6

Condition = Literal["absent", "silent", "loading", "ready"]
"""`absent`: nothing listens on the socket. `silent`: something listens, but does not answer in time."""


def short_socket_path(listening: Path, runtime_dir: Path | None) -> Path:
    """Return the path by which clients reach the socket `listening`: itself, or a short link to it.

    A socket address holds about 100 bytes of path, and clients read its URL as UTF-8. Any other path is
    reached through a symbolic link, named by a hash of the path, in a directory accessible to this user only.
    The socket stays with its data, so a caller with another runtime directory reaches the same server through
    another link.
    """
    if _is_address(listening):
        return listening
    name = hashlib.sha256(os.fsencode(listening)).hexdigest()[:16] + ".sock"
    problem = ""
    for directory in filter(None, (runtime_dir, Path(tempfile.gettempdir()))):
        link = directory / f"fdstore-{os.getuid()}" / name
        if not _is_address(link):
            problem = f"{link} is none either"
            continue
        try:
            link.parent.mkdir(mode=0o700, exist_ok=True)
            owner = link.parent.lstat()
            if stat.S_ISDIR(owner.st_mode) and owner.st_uid == os.getuid() and not owner.st_mode & 0o077:
                with contextlib.suppress(FileExistsError):  # the name determines the target
                    link.symlink_to(listening)
                return link
            problem = f"{link.parent} is not a directory that only this user can enter"
        except OSError as error:
            problem = str(error)
    raise StartFailed(str(listening), f"the path is no address for a socket, and {problem}")


def remove_short_path(listening: Path, runtime_dir: Path | None) -> None:
    """Remove the link that `short_socket_path` returns, and its directory if it is empty then."""
    link = short_socket_path(listening, runtime_dir)
    if link != listening:
        with contextlib.suppress(OSError):  # others have links there, or removed this one
            link.unlink()
            link.parent.rmdir()


def _is_address(path: Path) -> bool:
    """Return whether clients can reach a socket at a path: it is short enough, and UTF-8."""
    name = os.fsencode(path)
    return len(name) <= ADDRESS_BYTES and name == str(path).encode("utf-8", "replace")


def command_line(pid: int) -> str:
    """Return the command line of `pid`; "" if it has ended, is a zombie, or is in the middle of exec."""
    if Path("/proc/self").exists():
        try:
            return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).replace("\0", " ").strip()
        except OSError:
            return ""
    listing = subprocess.run(
        ["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return listing.stdout.strip()


def is_alive(pid: int) -> bool:
    """Return whether `pid` runs. Not judged by its command line, which is empty for a moment during exec,
    such as when the server replaces the shell that starts it."""
    if not Path("/proc/self").exists():
        return bool(command_line(pid))
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def wait_until(predicate: Callable[[], bool], timeout_s: float) -> bool:
    """Poll `predicate` until it is true or `timeout_s` pass. Return whether it became true."""
    deadline = time.monotonic() + timeout_s
    while not predicate():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


class ServerProcess:
    """The server of one directory. Takes no lock: callers must serialize starting and stopping.

    `options` replace or extend the lines of redis.conf.
    """

    def __init__(
        self,
        directory: Path,
        *,
        options: Mapping[str, str | int] | None = None,
        binary: Path | None = None,
        runtime_dir: Path | None = None,
    ) -> None:
        self.directory = directory
        self.config = directory / "redis.conf"
        self.log = directory / "redis.log"
        self._socket = directory / "redis.sock"
        self._options = dict(options or {})
        self._binary = binary
        self._runtime_dir = runtime_dir
        self._log_start = 0

    @property
    def url(self) -> str:
        return "unix://" + quote(os.fsencode(short_socket_path(self._socket, self._runtime_dir)))

    def client(self, listening: Path | None = None) -> redis.Redis:
        """Return a client that does not retry."""
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        return redis.Redis(
            unix_socket_path=str(short_socket_path(listening or self._socket, self._runtime_dir)),
            retry=Retry(NoBackoff(), 0),
            socket_timeout=ANSWER_DEADLINE_S,
            socket_connect_timeout=ANSWER_DEADLINE_S,
        )

    def condition(self, listening: Path | None = None) -> Condition:
        """Return how the server answers a PING now.

        Does not use redis-py, which raises the same error for "nothing listens" and "too busy to answer": the
        difference decides whether a second server may be started on the data.
        """
        listening = listening or self._socket
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_DEADLINE_S)
            try:
                listening.lstat()  # a server that has ended gets no link
                connection.connect(str(short_socket_path(listening, self._runtime_dir)))
                connection.sendall(b"PING\r\n")
                answer = connection.recv(64)
            except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
                return "absent"
            except OSError:
                return "silent"
        if answer.startswith(b"-LOADING"):
            return "loading"
        return "ready" if answer else "silent"

    def pid(self) -> int | None:
        """Return the process id from the pid file if that process is this server, else None."""
        import redis

        try:
            pid = int((self.directory / "redis.pid").read_text())
        except (OSError, ValueError):
            return None
        if f" {self.config} " in f" {command_line(pid)} ":
            return pid
        # perhaps started by hand with a relative path: it is ours if the server at our socket has this id
        try:
            with self.client() as client:
                return pid if client.info("server")["process_id"] == pid else None
        except redis.RedisError:
            return None

    def start(self) -> None:
        """Start the server and return when it serves. No server may be running on the directory.

        Raises `StartFailed` with the last lines of its log.
        """
        binary = self._binary or find_binary(self.directory)
        if problem := unreadable_reason(binary, self.directory):
            raise StartFailed(str(self._socket), problem)
        self.config.write_bytes(render_config(self.directory, self._options))
        if self._launch(binary, self._socket):
            return
        problem = self.log_tail()
        if self._has_log() and self._repair_torn_log(binary) and self._launch(binary, self._socket):
            return
        raise StartFailed(
            str(self._socket), f"{binary} exited immediately; its log ends:\n{problem}\n({self.log})"
        )

    def becomes_ready(self, listening: Path | None = None, pid: int | None = None) -> bool:
        """Wait until a starting server is ready. Return False if it ended (is `absent`) instead. Raises
        `StartFailed` after a deadline."""
        began = last_sign = time.monotonic()
        while (condition := self.condition(listening)) != "ready":
            if not is_alive(pid) if pid else condition == "absent":
                return False
            now = time.monotonic()
            if condition == "loading":
                last_sign = now
            if now - last_sign > START_DEADLINE_S or now - began > LOADING_DEADLINE_S:
                raise StartFailed(
                    str(self._socket),
                    f"still {condition} after {now - began:.0f} s; its log ends:\n{self.log_tail()}",
                )
            time.sleep(POLL_S)
        return True

    def stop(self, timeout_s: float) -> bool:
        """Shut the server down with its data on disk. Return False if none ran. Raises `TimedOut`."""
        import redis

        pid = self.pid()
        if pid is None and self.condition() == "absent":
            return False
        try:
            accepted = self.condition() == "ready"
            if accepted:
                with self.client() as client:
                    client.shutdown()
        except redis.RedisError:  # refused during a long script
            accepted = False
        if not accepted:
            self._signal(pid, signal.SIGTERM)  # same as SHUTDOWN, and always delivered
        if not wait_until(lambda: self._has_ended(pid), timeout_s):
            raise TimedOut(f"the end of the server at {self._socket}", timeout_s)
        remove_short_path(self._socket, self._runtime_dir)
        return True

    def kill(self) -> None:
        """End the server with SIGKILL, like a crash."""
        pid = self.pid()
        self._signal(pid, signal.SIGKILL)
        if not wait_until(lambda: self._has_ended(pid), START_DEADLINE_S):
            raise TimedOut(f"the end of the server at {self._socket}", START_DEADLINE_S)

    def log_tail(self) -> str:
        """Return the last lines of its log since it was started."""
        try:
            with self.log.open("rb") as log:
                log.seek(self._log_start)
                output = log.read()
        except OSError:
            return "(no log)"
        lines = output.decode("utf-8", "replace").strip().split("\n")
        return "\n".join(lines[-LOG_LINES_SHOWN:]) or "(nothing)"

    def _launch(self, binary: Path, listening: Path, *overrides: str) -> bool:
        """Launch it and wait until it is ready. Return False if it ended."""
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        # The shell exits immediately, so the server is reparented to init: it outlives us and leaves us no
        # zombie. In its own session it does not receive Ctrl-C from our terminal.
        launched = subprocess.run(
            [
                *("/bin/sh", "-c", 'umask 077; log=$1; shift; "$@" >>"$log" 2>&1 & echo $!', "sh"),
                *(str(self.log), str(binary), str(self.config), *overrides),
            ],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
            check=False,
        )
        if launched.returncode:
            raise StartFailed(str(self._socket), f"the shell could not start {binary}")
        return self.becomes_ready(listening, int(launched.stdout))

    def _repair_torn_log(self, binary: Path) -> bool:
        """Drop the torn tail of the log and rewrite it. Return False if it cannot be loaded at all."""
        import redis

        listening = self.directory / "mending.sock"
        overrides = ("--unixsocket", listening.name, "--port", "0", "--aof-load-truncated", "yes")
        if not self._launch(binary, listening, *overrides):
            return False
        pid = self.pid()
        try:
            with self.client(listening) as client:
                client.bgrewriteaof()
                written = wait_until(lambda: not _rewriting(client), LOADING_DEADLINE_S)
                repaired = written and client.info("persistence")["aof_last_bgrewrite_status"] == "ok"
                client.shutdown()
        except redis.RedisError as error:
            raise StartFailed(str(self._socket), f"repairing its torn log failed: {error}") from error
        if not wait_until(lambda: self._has_ended(pid), START_DEADLINE_S) or not repaired:
            problem = self.log_tail()
            raise StartFailed(str(self._socket), f"repairing its torn log failed:\n{problem}")
        remove_short_path(listening, self._runtime_dir)
        return True

    def _has_log(self) -> bool:
        return any((self.directory / name).exists() for name in ("appendonly.aof", "appendonlydir"))

    def _has_ended(self, pid: int | None) -> bool:
        return self.condition() == "absent" and not (pid and is_alive(pid))

    def _signal(self, pid: int | None, number: signal.Signals) -> None:
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _rewriting(client: redis.Redis) -> bool:
    persistence = client.info("persistence")
    return bool(persistence["aof_rewrite_in_progress"] or persistence["aof_rewrite_scheduled"])
