"""An `fdstore worker` with an extra no-op task: for an id `bare-N` it only records that it ran.

    python -m fdstore.bench.bare_task --url URL ...      as `python -P -m fdstore_workers` would be called

Otherwise it is the normal worker: same pool, queue, transport and message validation.
"""

from __future__ import annotations

import os
import runpy
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import redis

BARE = "bare-"
"""Prefix of the ids of no-op messages; no process has such an id."""


@cache
def _client(pid: int) -> redis.Redis:
    return redis.Redis.from_url(os.environ["FDSTORE_BENCH_URL"])


def also_bare(make_task_body: Callable[..., Callable[[str], None]]) -> Callable[..., Callable[[str], None]]:
    """Wrap `make_task_body` so that for a no-op id the task only sets the key of that name, which a MONITOR
    of the server records with its time."""

    def make_runner(*arguments: Any, **options: Any) -> Callable[[str], None]:
        run = make_task_body(*arguments, **options)

        def run_or_note(process: str) -> None:
            if process.startswith(BARE):
                _client(os.getpid()).set(process, "ran", px=10_000)
            else:
                run(process)

        return run_or_note

    return make_runner


if __name__ == "__main__":
    worker: Any = import_module("fdstore_workers.worker")
    worker.make_task_body = also_bare(worker.make_task_body)
    runpy.run_module("fdstore_workers", run_name="__main__")
