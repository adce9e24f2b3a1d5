"""An `fdstore worker` that knows one Celery task more: one that only notes that it runs.

    python -m fdstore.bench.bare_task --url URL ...      as `python -P -m fdstore_workers` would be called

A task registered as shared becomes part of every Celery application of its process, so the worker is
the one that people run: same pool, same queue, same transport.
"""

from __future__ import annotations

import os
import runpy
from functools import cache
from typing import Any

import redis
from celery import shared_task

BARE_TASK = "fdstore.bench.bare"


@cache
def _client(pid: int) -> redis.Redis:
    return redis.Redis.from_url(os.environ["FDSTORE_BENCH_URL"])


def bare(key: str) -> None:
    """Writes the key: whoever watches the server sees when."""
    _client(os.getpid()).set(key, "ran", px=10_000)


if __name__ == "__main__":
    shared: Any = shared_task(name=BARE_TASK)
    shared(bare)
    runpy.run_module("fdstore_workers", run_name="__main__")
