"""An `fdstore worker` that also does something bare: for an id `bare-N` it only notes that it ran.

    python -m fdstore.bench.bare_task --url URL ...      as `python -P -m fdstore_workers` would be called

The worker is the one that people run: same pool, same queue, same transport, same checks of a message.
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
"""What the ids of bare messages begin with; no process has such an id."""


@cache
def _client(pid: int) -> redis.Redis:
    return redis.Redis.from_url(os.environ["FDSTORE_BENCH_URL"])


def also_bare(runner_of: Callable[..., Callable[[str], None]]) -> Callable[..., Callable[[str], None]]:
    """Return `runner_of` whose runners only write the key that a bare id names: whoever watches the
    server sees when."""

    def made(*arguments: Any, **options: Any) -> Callable[[str], None]:
        run = runner_of(*arguments, **options)

        def run_or_note(process: str) -> None:
            if process.startswith(BARE):
                _client(os.getpid()).set(process, "ran", px=10_000)
            else:
                run(process)

        return run_or_note

    return made


if __name__ == "__main__":
    worker: Any = import_module("fdstore_workers.main")
    worker.runner_of = also_bare(worker.runner_of)
    runpy.run_module("fdstore_workers", run_name="__main__")
