"""A store with real workers and one process at a time that starts pipelines on them, and functions to inspect
the processes of the operating system."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis

import fdstore
from fdstore.agents.runtime.waker import waker
from fdstore.client import Process, Store
from fdstore.local.redis_server import PrivateServer
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import ProcessRecord, TreeLimits
from fdstore.store.processes import pipelines, process_records
from fdstore.store.processes.pipelines import PipeFds
from fdstore.testing import ScriptedModel
from fdstore.tools.process_task import PipeTask, encode_task
from fdstore.toolset._sync import Toolset
from tests.elements import Element, only
from tests.servers import values_in
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.with_workers.conftest import StartAgentWorker
from tests.worker_process import WorkerProcess

PROGRAMS = ["cat", "echo", "false", "grep", "head", "ls", "printf", "sleep", "sort", "tail", "true", "uniq"]
PROGRAMS += ["gzip", "wc", "yes"]
TOOLS = ["pipe", "wait", "kill", "read_fd", "write_fd", "close_fd", "list_fds"]
WHEREVER = "--unsandboxed-commands"
"""A sandbox is used where there can be one; without this, nothing here would run where there cannot."""
SANDBOX = os.environ.get("FDSTORE_TEST_SANDBOX", "auto")
"""All that is tested with pipelines holds in each: bubblewrap, sandlock."""


class Bench:
    """A store with workers, and one process at a time that starts pipelines on them."""

    def __init__(self, server: PrivateServer, model: ScriptedModel, start: StartAgentWorker) -> None:
        self.url, self.model, self._start = server.url, model, start
        self.store: Store = fdstore.connect(server.url)
        self.redis = redis.Redis.from_url(server.url, decode_responses=True)
        self.workers: list[WorkerProcess] = []
        self.sandbox: str | None = None

    def close(self) -> None:
        self.redis.close()
        self.store.close()

    def start_worker(self, concurrency: int = 6) -> WorkerProcess:
        worker = self._start(
            self.url, self.model, concurrency, "threads", WHEREVER, "--sandbox", self.sandbox or SANDBOX
        )
        self.workers.append(worker)
        return worker

    def begin(self, programs: Sequence[str] = PROGRAMS, limits: TreeLimits | None = None) -> None:
        """Create a root process for the test."""
        self.proc: Process = self.store.process(limits=limits)
        self.tools = Toolset(self.proc, enabled=TOOLS, commands=programs)

    def show(self, name: str, **arguments: Any) -> Element:
        return only(self.tools.call(name, arguments).content)

    def pipe(self, *commands: str, **more: Any) -> Element:
        made = self.show("pipe", commands=list(commands), **more)
        assert made.name == "process_result", made
        return made

    def pipe_with(self, limits: dict[str, Any], *commands: list[str], in_fd: str | None = None) -> PipeFds:
        """Start a pipeline with its own limits, as set in a program file."""
        brief = PipeTask(commands=list(commands), page_size=4000, **limits)
        started_ids = pipelines.start(
            self.proc.handle, encode_task(brief), title="it", in_fd=in_fd, tees=tuple(brief.tee)
        )
        made = self.store.run(started_ids)
        waker(self.url, "fdstore")(made.process)
        return made

    def wait(self, target: str, seconds: float = 40) -> Element:
        ended = self.show("wait", target=target, seconds=seconds)
        assert ended["state"] in ENDED, ended
        return ended

    def run(self, *commands: str, **more: Any) -> Element:
        return self.wait(self.pipe(*commands, **more)["process"])

    def text(self, fd: str) -> str:
        return self.proc.read(fd, read_all=True).text

    def record(self, process: str) -> ProcessRecord:
        return self.store.run(process_records.record("fdstore", process))

    def codes(self, process: str) -> str | None:
        return self.redis.hget(f"fdstore:{{{self.proc.id}}}:{process}", "codes")

    def keys(self) -> dict[bytes | str, Any]:
        """Return the values of all keys of the tree."""
        with redis.Redis.from_url(self.url) as raw:
            return values_in(raw, raw.keys(f"fdstore:{{{self.proc.id}}}*"))

    def wait_until_running(self, program: str, worker: WorkerProcess | None = None) -> int:
        """Wait until a program runs in a pipeline and return its pid."""
        found: list[int] = []

        def runs() -> bool:
            found[:] = [pid for pid in descendants_of(self._pid(worker)) if command_name(pid) == program]
            return bool(found)

        wait_until(runs)
        return found[0]

    def assert_nothing_runs(self, seconds: float) -> None:
        wait_until(lambda: not descendants_of(self._pid(None)), seconds)

    def _pid(self, worker: WorkerProcess | None) -> int:
        return (worker or self.workers[-1]).working_pid


def descendants_of(pid: int) -> list[int]:
    """Return all descendants of the process except zombies."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                said = (entry / "stat").read_text()
            except OSError:
                continue
            state, parent = said.rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(entry.name))
    found = list(children.get(pid, []))
    for each in found:
        found += children.get(each, [])
    return found


def command_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def rss_kb(pid: int) -> int:
    """Return the resident memory of a process in KB, 0 if it has ended."""
    try:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


@contextmanager
def track_growth_kb(pid: int) -> Iterator[list[int]]:
    """Sample every few milliseconds how much the memory of a process and its descendants has grown."""
    over = threading.Event()
    before, grown = rss_kb(pid), [0]

    def watch() -> None:
        while not over.wait(0.01):
            # before exec, a child shares the memory of its parent and reports it as its own
            programs = [each for each in descendants_of(pid) if command_name(each) != command_name(pid)]
            grown.append(sum(map(rss_kb, [pid, *programs])) - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield grown
    finally:
        over.set()
        watcher.join()
