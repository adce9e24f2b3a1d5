"""Waiting for what another thread or process does: all limits of time in the tests have their home here.

A limit ends what hangs. It says nothing about speed, so it is far above what a busy machine needs: beside
eight spinning processes on two processors everything takes ten times as long. Limits are nested, so that the
innermost, which knows most, fails first:

    PATIENCE_S          one wait
    CHILD_DEADLINE_S    one child process, see children.py
    `timeout` in pyproject.toml   one test; pytest-timeout prints the stacks of all threads

Times that a test shortens in what it tests (a lease, a time-out), and bounds of how long it may take, hold on
a quiet machine alone. `stretched` suits them to how fast this one is now.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

LOOK_EVERY_S = 0.02
PATIENCE_S = 240.0
CHILD_DEADLINE_S = 300.0
SPIN_S = 0.1
MEASURE_EVERY_S = 10
USUAL_SLOWNESS = 3.0
"""Tests run in more processes than there are processors."""


def slowness() -> float:
    """Return how many times as long as alone a busy thread takes on this machine now, as measured within the
    last seconds: 1.0 or more."""
    return _slowness(int(time.monotonic() / MEASURE_EVERY_S))


@functools.lru_cache(maxsize=1)
def _slowness(_when: int) -> float:
    began, used = time.perf_counter(), time.thread_time()
    while (took := time.perf_counter() - began) < SPIN_S:
        pass
    return max(1.0, took / (time.thread_time() - used))


def stretched(seconds: float) -> float:
    """Return a time that suits a machine that runs these tests alone, and on a busier one up to ten times as
    much."""
    return seconds * min(max(slowness() / USUAL_SLOWNESS, 1.0), 10.0)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the block takes longer, on a quiet machine."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < stretched(seconds)


def wait_until(happened: Callable[[], object], seconds: float = PATIENCE_S, what: object = "it") -> None:
    """Return when `happened()` is true; fail if it is still false after `seconds`.

    `what` is formatted when it fails, and so may tell how far it came.
    """
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, f"{what} did not happen within {seconds:g} s"
        threading.Event().wait(LOOK_EVERY_S)


def concurrently(*works: Callable[[], T]) -> list[T]:
    """Run each work in a thread of its own, all at once; return what they return, or raise the first
    exception."""
    begin = threading.Barrier(len(works))

    def run(work: Callable[[], T]) -> T:
        begin.wait(PATIENCE_S)
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        return [running.result(PATIENCE_S) for running in [threads.submit(run, work) for work in works]]


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[None]:
    """Repeat the work in a thread until the block ends; raise what the work raised."""
    over = threading.Event()

    def repeat() -> None:
        while not over.is_set():
            work()

    with ThreadPoolExecutor(1) as thread:
        repeating = thread.submit(repeat)
        try:
            yield
        finally:
            over.set()
        repeating.result(PATIENCE_S)
