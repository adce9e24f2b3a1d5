"""An MCP server as a child process: its streams, and its end with all that it started."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from fdstore.errors import InvalidArgument
from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.lines import READ_BYTES, MessageWriter, read_lines
from fdstore.hosts.gateway.messages import Message

KEPT_STDERR_BYTES = 1 << 20
"""The bytes of stderr that are kept for a host that does not read it; then the oldest are dropped."""

STDIN_END_S = 0.2


class UpstreamProcess:
    """A running server in a process group of its own, which a signal to the gateway's does not reach."""

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str] | None = None, directory: str | None = None
    ) -> None:
        """Start the command, with further variables `env`. Raises `InvalidArgument` if it cannot be
        started."""
        self.command = shlex.join(command)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                process_group=0,
                env=None if env is None else {**os.environ, **env},
                cwd=directory,
            )
        except (OSError, ValueError) as error:  # ValueError: a word or a variable that no program can have
            problem = getattr(error, "strerror", None) or str(error)
            raise InvalidArgument("COMMAND", f"{command[0]} cannot be started: {problem}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        with self._process.stdin as stdin:  # the writer closes a descriptor of its own
            self._stdin = MessageWriter(os.dup(stdin.fileno()))
        self.stdout = self._process.stdout.fileno()
        self.stderr = self._process.stderr.fileno()
        self._pump: StderrPump | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, line: Buffer) -> bool:
        """Write a line to the server, waiting for it as long as it takes. Return whether it reads."""
        return self._stdin.write(line)

    def messages(self) -> Iterator[Message]:
        """Yield what the server writes, a line each, until it has closed its output."""
        return map(Message, read_lines(self.stdout, self.send))

    def pass_stderr(self, target: int) -> None:
        """Begin to write the server's log to a file descriptor."""
        self._pump = StderrPump(self.stderr, target)
        self._pump.start()

    def finish_stderr(self, timeout_s: float) -> None:
        """Wait until the server's log is written, at most `timeout_s` for each side."""
        if self._pump is not None:
            self._pump.finish(timeout_s)

    def close_stdin(self) -> None:
        """Tell the server that no request follows."""
        self._stdin.close(STDIN_END_S)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Return the exit code, 128 + n after signal n; None if the server still runs after `timeout_s`."""
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        return 128 - code if code < 0 else code

    def end(self, grace_s: float) -> int:
        """End the server and what it started: SIGTERM, and SIGKILL after `grace_s`. Return its exit code."""
        self.close_stdin()
        self._signal(signal.SIGTERM)
        code = self.wait(grace_s)
        self._signal(signal.SIGKILL)  # its children may be left
        return self.wait() or 0 if code is None else code

    def describe_end(self, code: int) -> str:
        """Return a sentence about the end of the server."""
        if code > 128 and code - 128 in set(signal.Signals):
            name = signal.Signals(code - 128).name
            return f"the MCP server was ended by {name} (exit code {code}): {self.command}"
        return f"the MCP server exited with code {code}: {self.command}"

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


class StderrPump:
    """Passes stderr of a server on, and reads it to the end even if our own is not read: a server must never
    wait for its log."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self._chunks: deque[bytes] = deque()
        self._size = self._dropped = 0
        self._changed = threading.Condition()
        self._is_over = False
        self._threads = [
            threading.Thread(target=body, name=f"fdstore-stderr-{body.__name__}", daemon=True)
            for body in (self._read, self._write)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def finish(self, timeout_s: float) -> None:
        """Wait until everything is passed on, at most `timeout_s` for each side."""
        for thread in self._threads:
            thread.join(timeout_s)

    def _read(self) -> None:
        with suppress(OSError):
            while chunk := os.read(self._source, READ_BYTES):
                with self._changed:
                    self._chunks.append(chunk)
                    self._size += len(chunk)
                    while self._size > KEPT_STDERR_BYTES and len(self._chunks) > 1:
                        oldest = len(self._chunks.popleft())
                        self._size -= oldest
                        self._dropped += oldest
                    self._changed.notify()
        with self._changed:
            self._is_over = True
            self._changed.notify()

    def _write(self) -> None:
        out = MessageWriter(self._target)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._chunks or self._is_over)
                if not self._chunks:
                    return
                dropped, self._dropped = self._dropped, 0
                chunk = self._chunks.popleft()
                self._size -= len(chunk)
            if dropped:
                out.write(f"\nfdstore gateway: {dropped} bytes of the server's log were not read\n".encode())
            out.write(chunk)
