"""Real workers as subprocesses. All tests start workers through this module."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from fdstore.local.worker import worker_command
from tests.children import Child
from tests.conftest import children_of, is_running
from tests.process_template import FRESH, WORKER, ForkedChild
from tests.waiting import wait_until

ROOT = Path(__file__).parent.parent


class WorkerProcess:
    """A running worker and its log. `process` is its supervisor.

    options   of `fdstore worker`
    program   a script that starts a worker in another way, in place of the package
    fresh     start it as users do, in a new interpreter; otherwise as a fork of one that has imported
              everything, more than a second of processor time cheaper
    """

    def __init__(
        self,
        log: Path,
        options: Sequence[str],
        *,
        environ: Mapping[str, str] | None = None,
        folder: Path | None = None,
        program: Path | None = None,
        fresh: bool = False,
    ) -> None:
        self._log = log
        self.process: Child[bytes]
        with log.open("wb") as output:
            given = {"deadline_s": None, "stdout": output, "stderr": subprocess.STDOUT}
            given |= {"env": environ, "cwd": folder}
            module = ".".join(program.relative_to(ROOT).with_suffix("").parts) if program else WORKER
            if not fresh and not os.environ.get(FRESH):
                self.process = ForkedChild(module, options, **given)
            elif program:
                run = f"import sys; sys.path[0] = {str(ROOT)!r}; from {module} import main; sys.exit(main())"
                self.process = Child([sys.executable, "-c", run, *options], **given)
            else:
                self.process = Child(worker_command(*options), **given)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def name(self) -> str:
        """The worker's name in the records of the processes that it runs, as its log says at its start; empty
        until then, when it runs nothing."""
        found = re.search(r'this worker is ([^\s"]+)', self.log)
        if not found:
            return ""
        assert found[1].startswith(f"{socket.gethostname()}:{self.pid}-")
        return found[1]

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    @property
    def is_ready(self) -> bool:
        return any(f"{before}ready: " in self.log for before in ' "')  # the latter in JSON

    @property
    def working_pid(self) -> int:
        """The pid of the supervisor's child that takes messages, while no other child runs an agent alone."""
        [pid] = children_of(self.pid)
        return pid

    def wait_until_ready(self) -> Self:
        wait_until(lambda: self.is_ready or not self.is_alive, what="the start of a worker")
        assert self.is_alive, self.log
        return self

    def terminate(self) -> None:
        self.process.terminate()

    def end(self) -> int:
        """Terminate the worker and return its exit code."""
        return self.process.end()

    def kill(self) -> None:
        """Kill the supervisor as a crash of the machine would; its children end with it."""
        children = children_of(self.pid)
        if self.is_alive:
            self.process.kill()
        self.process.wait()
        wait_until(lambda: not any(map(is_running, children)), what="the end of a worker's children")


@contextmanager
def running_worker(
    folder: Path,
    *options: str,
    environ: Mapping[str, str] | None = None,
    log: str = "worker.log",
    fresh: bool = True,
) -> Iterator[WorkerProcess]:
    """Start a worker in `folder`, by default as users do, yield it when it is ready, and end it cleanly."""
    environ = {**os.environ, **(environ or {})}
    worker = WorkerProcess(folder / log, options, environ=environ, folder=folder, fresh=fresh)
    try:
        worker.wait_until_ready()
        yield worker
    finally:
        worker.end()
