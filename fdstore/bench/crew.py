"""Start a real worker process for measurements that run agents."""

from __future__ import annotations

import os
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from fdstore.bench.slow_model import SlowModel
from fdstore.bench.stage import Stage
from fdstore.errors import StoreUnavailable
from fdstore.local.worker import worker_command
from fdstore.testing import ScriptedModel

STOP_S = 40.0


@contextmanager
def run_worker(
    stage: Stage, model: ScriptedModel | SlowModel, concurrency: int, module: str = "fdstore_workers"
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
