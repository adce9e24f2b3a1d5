"""Real workers that tests kill, suspend, resume and replace."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fdstore.client import Store
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import ProcessRecord
from fdstore.testing import ScriptedModel
from tests.conftest import children_of, is_running
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

HERE = Path(__file__).parent
QUICK_WORKER = HERE / "quick_worker.py"
FLEET = HERE / "fleet.py"


class Worker(WorkerProcess):
    """A worker whose processes are suspended and resumed together, like those of a machine."""

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the supervisor, which forwards it."""
        self.process.send_signal(number)

    def stop(self) -> None:
        """Suspend all processes of the worker until `resume`."""
        for pid in (self.pid, *children_of(self.pid)):
            os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        for pid in (*children_of(self.pid), self.pid):
            os.kill(pid, signal.SIGCONT)

    def kill_child(self) -> int:
        """Kill the working child, which the supervisor notices, and return its pid."""
        [pid] = filter(is_running, children_of(self.pid))  # without one that has ended and is not reaped
        os.kill(pid, signal.SIGKILL)
        return pid


class WorkerPool:
    """The workers of one test."""

    def __init__(self, url: str, folder: Path, note: Callable[[str], None]) -> None:
        self._url = url
        self._folder = folder
        self._note = note
        self._workers: list[Worker] = []
        self.environment: dict[str, str] = {"PYTHONPATH": str(HERE)}

    @contextmanager
    def scripted(self, script: Any, **environ: str) -> Iterator[ScriptedModel]:
        """Serve a model to the workers that are started in the block, with these variables."""
        with ScriptedModel(script) as model:
            self.environment |= model.environ | environ
            yield model

    def start_ready(self, count: int, concurrency: int = 2, **options: Any) -> list[Worker]:
        """Start this many workers, and return when all are ready."""
        started = [self.start_worker(concurrency, **options) for _ in range(count)]
        return [worker.wait_until_ready() for worker in started]

    def start_worker(
        self,
        concurrency: int = 2,
        *,
        pool: str = "threads",
        quick: bool = True,
        url: str | None = None,
        program: Path = QUICK_WORKER,
    ) -> Worker:
        """Start a worker without waiting for it. A quick one, started by `program`, has leases of one second,
        not ten."""
        options = ["--url", url or self._url, "-c", str(concurrency), "--pool", pool]
        return self._start(options, program if quick else None)

    def start_fleet(self, count: int, concurrency: int, *, quick: bool) -> Worker:
        """Start this many workers, which are children of one process that replaces those that die."""
        options = [str(count), "--url", self._url, "-c", str(concurrency)]
        return self._start(options, FLEET, {"FLEET_QUICK": "1"} if quick else {})

    def _start(self, options: list[str], program: Path | None, environ: Mapping[str, str] = {}) -> Worker:
        options += ["--allow-python", "*", "--allow-command", "*"]
        log = self._folder / f"worker-{len(self._workers)}.log"
        environ = {**os.environ, **self.environment, **environ}
        worker = Worker(log, options, environ=environ, folder=self._folder, program=program)
        self._workers.append(worker)
        return worker

    @property
    def alive(self) -> list[Worker]:
        return [worker for worker in self._workers if worker.is_alive]

    def kill_one(self, store: Store, trees: list[str], rng: random.Random) -> list[ProcessRecord]:
        """Kill a random worker that runs processes of these trees, and return the records of what it ran.
        Empty if all processes ended first."""
        held: dict[int, list[ProcessRecord]] = {}

        def found() -> bool:
            held.clear()
            members = [member for tree in trees for member in store.tree(tree).members]
            for member in members:
                if member.state == "running" and member.worker:
                    pid = int(member.worker.rpartition(":")[2].partition("-")[0])
                    held.setdefault(pid, []).append(member)
            for dead in held.keys() - {worker.pid for worker in self.alive}:
                del held[dead]  # its death is not recorded yet
            return bool(held) or all(member.state in ENDED for member in members)

        wait_until(found, 60, "a worker that runs a process")
        if not held:
            return []
        victim = rng.choice([worker for worker in self.alive if worker.pid in held])
        victim.kill()
        self._note("worker killed")
        return held[victim.pid]

    def logs(self) -> str:
        return "\n".join(f"--- worker {worker.pid}\n{worker.log}" for worker in self._workers)

    def kill_all(self) -> None:
        """Kill the remaining workers."""
        for worker in self.alive:
            worker.resume()
            worker.kill()
