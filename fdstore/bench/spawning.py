"""Spawning: the time from a parent's call to the child's first read, compared with a no-op Celery task.

Both take the same path (broker, worker, a thread of its pool), alternately, in one run. The difference is the
cost of a child: it is created with its ten descriptors, claimed, and reads its program and a page.

Times are taken from outside, by the server's MONITOR, without instrumenting the worker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import redis

from fdstore.agents.loop.program_loader import Bundle, Program
from fdstore.agents.runtime.queue import Dispatcher
from fdstore.bench import texts
from fdstore.bench.bare_task import BARE
from fdstore.bench.measuring import BenchRow, Lap, at_most, format_duration, row, self_timed, take_turns
from fdstore.bench.real_workers import run_worker, wait_for_end
from fdstore.bench.stage import KB, BenchStage
from fdstore.client import Process
from fdstore.errors import TimedOut
from fdstore.store.processes import processes
from fdstore.testing import ScriptedModel, say
from fdstore.tools.process_task import SpawnTask, encode_task

SHARED = 10
"""Descriptors that the child gets."""

PLACES = 4
PATIENCE_S = 20.0


def rows(stage: BenchStage) -> Iterator[BenchRow]:
    with (
        ScriptedModel(lambda _: say("It was read.")) as model,
        run_worker(stage, model, PLACES, "fdstore.bench.bare_task"),
        stage.process() as parent,
        monitoring(stage) as monitor,
    ):
        rounds = take_turns(
            [spawning(stage, monitor, parent), bare(stage, monitor)], 2 * stage.budget_s, at_once=1
        )
    value = rounds.value(lambda child, task: (child - task) * 1000)
    case = f"spawn with {SHARED} descriptors to its first read, over a bare task"
    yield row(case, at_most(5, "ms"), value, *map(format_duration, rounds.medians))


class CommandMonitor:
    """Observer of the server's commands and their times."""

    def __init__(self, monitor: Any) -> None:
        self._monitor = monitor

    def time_of(self, word: str) -> float:
        """Return the time of the next command with this word that a client sent (not a script)."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            seen = self._monitor.next_command()
            words = seen["command"].split(" ")
            if seen["client_type"] != "lua" and word in words:
                return float(seen["time"])
        raise TimedOut(f"a command with {word}", PATIENCE_S)


@contextmanager
def monitoring(stage: BenchStage) -> Iterator[CommandMonitor]:
    with (
        redis.Redis.from_url(stage.url, socket_timeout=PATIENCE_S) as client,
        client.monitor() as monitor,
    ):
        yield CommandMonitor(monitor)


def spawning(stage: BenchStage, monitor: CommandMonitor, parent: Process) -> Lap:
    """Time spawning children as the tool `spawn` does, one at a time; each runs to its end."""
    text = texts.of_kind(texts.LOGS, 4 * KB)
    fds = [parent.create(text).fd for _ in range(SHARED)]
    bundle = Bundle(
        root="reader", programs={"reader": Program(name="reader", model="any", tools=("read_fd",))}
    )
    program = processes.StoredProgram("reader", bundle.digest, bundle.json)
    task = encode_task(SpawnTask(query="Read.", preload=fds))
    dispatcher = Dispatcher(stage.url, prefix=stage.store.prefix)

    def spawn() -> float:
        start = time.time()
        making = processes.create_child(parent.handle, fds, state="ready", program=program, brief=task)
        child = stage.store.run(making)
        dispatcher.wake(child.id)
        # the worker's first read of its descriptor table
        passed = monitor.time_of(child.keys.fds) - start
        wait_for_end(stage, child.id, PATIENCE_S)
        return passed

    return self_timed(spawn)


def bare(stage: BenchStage, monitor: CommandMonitor) -> Lap:
    """Time messages whose task does nothing, sent in the same way."""
    dispatcher = Dispatcher(stage.url, prefix=stage.store.prefix)
    numbers = count(1)

    def wake() -> float:
        key = f"{BARE}{next(numbers)}"
        start = time.time()
        dispatcher.wake(key)
        return monitor.time_of(key) - start

    return self_timed(wake)
