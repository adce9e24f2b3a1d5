"""Cancelled and interrupted reads raise, and the next read returns its own text."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

import fdstore.aio
from tests.children import Child
from tests.waiting import PATIENCE_S

TRIALS = 200
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
ROOT = Path(__file__).parents[3]


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """Runs a coroutine in a loop of each kind."""

    def run_it(work: Any) -> Any:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            return runner.run(work)

    return run_it


async def reader(url: str) -> tuple[fdstore.aio.Store, fdstore.aio.Process]:
    store = await fdstore.aio.connect(url)
    proc = await store.process("triage")
    await proc.create("".join(f"{number:>9}\n" for number in range(1, 1001)), page_size=10)
    return store, proc


async def read_for_ever(proc: fdstore.aio.Process) -> None:
    number = 0
    while True:
        number = number % 1000 + 1
        assert (await proc.read("fd:1", start=number)).text == f"{number:>9}\n"
        assert (await proc.read("fd:1", mode="line", start=number)).text == f"{number:>9}\n"


async def cancelled_at_any_time(url: str) -> int:
    store, proc = await reader(url)
    rng = random.Random(7)
    cancelled = 0
    async with store:
        for _ in range(TRIALS):
            task = asyncio.create_task(read_for_ever(proc))
            for _ in range(rng.randrange(60)):
                await asyncio.sleep(0)
            await asyncio.sleep(rng.uniform(0, 0.002))
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=PATIENCE_S)
            assert done, "a cancel was swallowed"
            cancelled += task.cancelled()
        assert (await proc.read("fd:1", start=5)).text == "        5\n"
    return cancelled


@pytest.mark.thorough("many moments")
def test_a_reading_task_can_be_cancelled_at_any_moment(redis_url: str, run: Any) -> None:
    assert run(cancelled_at_any_time(redis_url)) == TRIALS


@pytest.mark.thorough("many interrupts, for a moment that is seldom hit")
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_interrupted_reads_neither_crash_the_interpreter_nor_mix_up_texts(redis_url: str, seed: int) -> None:
    command = [sys.executable, "-m", "tests.on_redis.interrupted", redis_url, str(TRIALS), str(seed)]
    with Child(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        assert child.stdout is not None
        output = child.stdout.read()

    assert child.returncode == 0, output
    assert f"{TRIALS} trials" in output
