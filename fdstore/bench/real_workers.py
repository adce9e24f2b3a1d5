"""Real worker processes for measurements that run agents, and the agents that they are woken for."""

from __future__ import annotations

import os
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from fdstore.agents.runtime.queue import Dispatcher
from fdstore.bench.slow_model import SlowModel
from fdstore.bench.stage import BenchStage
from fdstore.errors import StoreUnavailable
from fdstore.local.worker import worker_command
from fdstore.model.records import ProcessRecord
from fdstore.store.processes import process_records, waiting
from fdstore.testing import ScriptedModel

STOP_S = 40.0


@contextmanager
def run_worker(
    stage: BenchStage, model: ScriptedModel | SlowModel, concurrency: int, module: str = "fdstore_workers"
) -> Iterator[int]:
    """Start a worker whose agents use `model`, wait until it is ready, and yield its process id."""
    command = worker_command("--url", stage.url, "-c", str(concurrency), "--allow-python", "*", module=module)
    environ = {**os.environ, **model.environ, "FDSTORE_BENCH_URL": stage.url}
    environ.pop("FDSTORE_BROKER_URL", None)
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environ
    )
    lines: deque[str] = deque(maxlen=20)
    ready = threading.Event()

    def read_output() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if " ready: " in line:
                ready.set()
        ready.set()

    reader = threading.Thread(target=read_output, daemon=True)
    reader.start()
    try:
        ready.wait()
        if process.poll() is not None:
            raise StoreUnavailable(stage.url, "the worker ended: " + "".join(lines))
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        finally:
            process.kill()
            process.wait()
            reader.join()


def wake(stage: BenchStage, *processes: str) -> None:
    """Wake the workers for these processes."""
    dispatcher = Dispatcher(stage.url, prefix=stage.store.prefix)
    dispatcher.wake(*processes)
    dispatcher.close()


def record_of(stage: BenchStage, process: str) -> ProcessRecord:
    return stage.store.run(process_records.record(stage.store.prefix, process))


def wait_for_end(stage: BenchStage, process: str, patience_s: float) -> ProcessRecord:
    """Wait until a process has ended, and return its record."""
    stage.store.run(waiting.wait_until_ended(stage.store.prefix, [process], patience_s))
    return record_of(stage, process)
