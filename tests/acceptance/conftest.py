"""The real command in a separate process with its own environment, as a person runs it. It is a fork of a
process that has imported everything, unless the environment has variables that interpreters read.

All tests share one embedded server, started by the first command that needs it, and are isolated by key
prefixes. A test of the server itself uses the `fresh` command, which has its own data directory.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fdstore
from fdstore.local.redis_server import EmbeddedServer
from tests.children import Child
from tests.process_template import COMMAND, ForkedChild, starts_alike
from tests.waiting import PATIENCE_S

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
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        given: dict[str, Any] = {"env": self.environment, "cwd": self.folder, **pipes, **streams}
        words = list(map(str, args))
        if starts_alike(self.environment) and not fresh:
            return ForkedChild(COMMAND, words, **given)
        return Child([sys.executable, "-m", "fdstore", *words], **given)

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

    def on_terminal(self, *args: str | Path, columns: int = 80, err_too: bool = False) -> CommandResult:
        """Run the command with a terminal for its output, or for both outputs; `raw` is what is sent to the
        terminal."""
        terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with self.start(*args, stdout=theirs, stderr=theirs if err_too else subprocess.PIPE) as process:
            os.close(theirs)
            assert process.stdin is not None
            process.stdin.close()
            sent = b"".join(iter(lambda: read_terminal(terminal), b""))
            os.close(terminal)
            err = "" if process.stderr is None else process.stderr.read().decode("utf-8")
            process.wait(PATIENCE_S)
        return CommandResult(process.returncode, sent.replace(b"\r\n", b"\n"), err)

    def store(self) -> fdstore.Store:
        """Open the same store through the library, to prepare or inspect it."""
        url = EmbeddedServer(self.data_dir).ensure()
        return fdstore.connect(url, self.environment.get("FDSTORE_PREFIX"))


def read_terminal(terminal: int) -> bytes:
    """Read what has come to a terminal; empty when its other side is closed."""
    with suppress(OSError):  # EIO: the other side is closed
        return os.read(terminal, 65536)
    return b""


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
def make_command(tmp_path: Path) -> Callable[..., Command]:
    """`make_command(FDSTORE_URL=...)`: the command with an environment of the test's choice."""
    return lambda **environment: Command(tmp_path / "data", tmp_path, **environment)
