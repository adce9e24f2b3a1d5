"""The real command in a separate process with its own environment, as a person runs it. It is a fork of a
process that has imported everything, unless the environment has variables that interpreters read.

All tests share one embedded server, started by the first command that needs it, and are isolated by key
prefixes. A test of the server itself uses the `fresh` command, which has its own data directory.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fdstore
from fdstore.local.redis_server import EmbeddedServer
from tests.children import Child
from tests.process_template import start_command
from tests.waiting import PATIENCE_S
from tests.worker_process import WorkerProcess, running_worker

STREAMS = ("stdin", "stdout", "stderr")

_prefixes = (f"t{number}" for number in itertools.count())


class CommandResult(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode("utf-8")

    @property
    def lines(self) -> list[str]:
        return self.out.split("\n")[:-1]

    @property
    def documents(self) -> list[Any]:
        """The JSON of each line."""
        return [json.loads(line) for line in self.lines]

    @property
    def document(self) -> Any:
        """The one document that was printed."""
        return json.loads(self.out)


class Terminal:
    """A terminal. `theirs` is the side of a command; closed here, this one is at its end when all is read."""

    def __init__(self, columns: int = 80) -> None:
        self._ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self._seen = b""

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def read(self) -> bytes:
        """Read what has come; empty when the other side is closed."""
        with suppress(OSError):  # EIO: the other side is closed
            return os.read(self._ours, 65536)
        return b""

    def until(self, text: str) -> str:
        """Read until this text is shown. Return what came before it, and forget both."""
        while text.encode() not in self._seen:
            more = self.read()
            assert more, f"{text!r} is not shown: {self._seen!r}"
            self._seen += more
        before, _, self._seen = self._seen.partition(text.encode())
        return before.decode()

    def rest(self) -> bytes:
        """Read to the end, and close the terminal."""
        found = self._seen + b"".join(iter(self.read, b""))
        self.close()
        return found

    def close(self) -> None:
        os.close(self._ours)


class Command:
    """`fdstore` with one data directory and one prefix: `command("ls", "triage")`."""

    def __init__(self, data_dir: Path, folder: Path, **environment: str) -> None:
        self.data_dir = data_dir
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FDSTORE_")}
        self.environment = {**kept, "NO_COLOR": "1", "FDSTORE_DATA_DIR": str(data_dir), **environment}

    def start(self, *args: str | Path, fresh: bool = False, **streams: int) -> Child[bytes]:
        """Start a command in the background; `streams` are those of Popen, pipes by default.

        `fresh`: in a new interpreter, whose memory is that of the command alone.
        """
        pipes = dict.fromkeys(STREAMS, subprocess.PIPE)
        given: dict[str, Any] = {"env": self.environment, "cwd": self.folder, **pipes, **streams}
        return start_command(*map(str, args), fresh=fresh, **given)

    def without_key(self) -> dict[str, str]:
        """Return its environment without the variables of the Messages API."""
        return {name: value for name, value in self.environment.items() if not name.startswith("ANTHROPIC_")}

    def __call__(self, *args: str | Path, stdin: bytes = b"") -> CommandResult:
        with self.start(*args) as process:
            out, err = process.communicate(stdin, timeout=PATIENCE_S)
        try:
            return CommandResult(process.returncode, out, err.decode("utf-8"))
        except UnicodeDecodeError:
            said = f"exit code {process.returncode}, and no text on standard error: {err!r}"
            raise AssertionError(said) from None

    def python(self, program: str, *args: str) -> CommandResult:
        """Run a user's Python program in the same environment."""
        words = [sys.executable, "-c", program, *args]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with Child(words, env=self.environment, cwd=self.folder, **pipes) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
        return CommandResult(process.returncode, out, err.decode("utf-8"))

    @contextmanager
    def at_terminal(
        self, *args: str | Path, streams: Sequence[str] = STREAMS, columns: int = 80
    ) -> Iterator[tuple[Child[bytes], Terminal]]:
        """Start a command with a terminal as these streams; the others are pipes."""
        terminal = Terminal(columns)
        with self.start(*args, **dict.fromkeys(streams, terminal.theirs)) as process:
            os.close(terminal.theirs)
            yield process, terminal

    def on_terminal(self, *args: str | Path, columns: int = 80, err_too: bool = False) -> CommandResult:
        """Run the command with a terminal for its output, or for both outputs; `raw` is what is sent to the
        terminal."""
        streams = STREAMS[1:] if err_too else STREAMS[1:2]
        with self.at_terminal(*args, streams=streams, columns=columns) as (process, terminal):
            assert process.stdin is not None
            process.stdin.close()
            sent = terminal.rest()
            err = "" if process.stderr is None else process.stderr.read().decode("utf-8")
            process.wait(PATIENCE_S)
        return CommandResult(process.returncode, sent.replace(b"\r\n", b"\n"), err)

    def store(self) -> fdstore.Store:
        """Open the same store through the library, to prepare or inspect it."""
        url = EmbeddedServer(self.data_dir).ensure()
        return fdstore.connect(url, self.environment.get("FDSTORE_PREFIX"))


def peak_bytes(pid: int) -> int:
    """Return the most memory that a process has used; 0 if it has ended."""
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text("ascii"))
    return int(peak[1]) * 1024 if peak else 0


def imported_by(command: Command, *args: str, stdin: bytes = b"") -> tuple[bytes, set[str]]:
    """Run a command in a new interpreter. Return what it prints, and the modules that it has imported."""
    words = [sys.executable, "-X", "importtime", "-m", "fdstore", *args]
    with Child(words, env=command.environment, **dict.fromkeys(STREAMS, subprocess.PIPE)) as process:
        out, trace = process.communicate(stdin, timeout=PATIENCE_S)
    return out, {line.rpartition("|")[2].strip() for line in trace.decode().split("\n")}


@pytest.fixture(scope="session")
def shared_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    data_dir = tmp_path_factory.mktemp("shared")
    yield data_dir
    Command(data_dir, data_dir)("down")


@pytest.fixture
def command(shared_data_dir: Path, tmp_path: Path) -> Command:
    """The command on the shared server, with its own prefix, in an empty folder."""
    return Command(shared_data_dir, tmp_path, FDSTORE_PREFIX=next(_prefixes))


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Command]:
    """The command with a new, empty data directory."""
    made = Command(tmp_path / "data", tmp_path)
    yield made
    ended = made("down")
    assert ended.code == 0, ended.err


@pytest.fixture
def store(command: Command) -> Iterator[fdstore.Store]:
    """The library on the store that `command` uses."""
    with command.store() as opened:
        yield opened


@pytest.fixture
def proc(store: fdstore.Store) -> fdstore.Process:
    """The process `triage` of that store, made before the test begins."""
    return store.process("triage")


@pytest.fixture
def start_worker(command, store, tmp_path) -> Callable[..., AbstractContextManager[WorkerProcess]]:
    """`start_worker("--allow-command", "grep")`: a worker on the store of `command` while the block
    runs; with a sandbox where there can be one."""

    def start(*options: str) -> AbstractContextManager[WorkerProcess]:
        where = ["--url", store.url, "--prefix", store.prefix, "-c", "4", "--unsandboxed-commands"]
        return running_worker(tmp_path, *where, *options, environ=command.environment, fresh=False)

    return start


@pytest.fixture
def make_command(tmp_path: Path) -> Callable[..., Command]:
    """`make_command(FDSTORE_URL=...)`: the command with an environment of the test's choice."""
    return lambda **environment: Command(tmp_path / "data", tmp_path, **environment)
