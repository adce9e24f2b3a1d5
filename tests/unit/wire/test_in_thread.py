"""Async calls in threads: which of them a cancellation waits for."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fdstore.wire._async.in_thread import run_in_thread
from tests.waiting import PATIENCE_S


async def cancelled_while_it_runs(*, must_end: bool) -> tuple[bool, bool]:
    """Cancel a call while it runs; return whether the awaiting task ended before it, and whether it ended."""
    runs, may_end = threading.Event(), threading.Event()

    def call() -> None:
        runs.set()
        assert may_end.wait(PATIENCE_S)

    awaiting = asyncio.create_task(run_in_thread(call, must_end=must_end))
    await asyncio.to_thread(runs.wait, 20)
    awaiting.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    before = awaiting.cancelled()
    may_end.set()
    await asyncio.wait([awaiting], timeout=PATIENCE_S)
    return before, awaiting.cancelled()


@pytest.mark.parametrize("must_end", [True, False])
async def test_a_cancel_waits_only_for_a_call_that_must_end(must_end: bool) -> None:
    assert await cancelled_while_it_runs(must_end=must_end) == (not must_end, True)


async def test_a_call_cancelled_before_it_starts_never_starts_and_is_not_waited_for() -> None:
    begun: list[int] = []

    busy, may_end = threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))

    def occupy() -> None:
        busy.set()
        assert may_end.wait(PATIENCE_S)

    occupying = loop.run_in_executor(None, occupy)
    while not busy.is_set():
        await asyncio.sleep(0)
    awaiting = asyncio.create_task(run_in_thread(lambda: begun.append(1), must_end=True))
    await asyncio.sleep(0)
    awaiting.cancel()
    await asyncio.wait([awaiting], timeout=PATIENCE_S)
    may_end.set()
    await occupying

    assert awaiting.cancelled()
    assert begun == []


async def test_the_result_or_exception_of_a_call_is_propagated() -> None:
    assert await run_in_thread(lambda: 7, must_end=True) == 7
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(lambda: 1 // 0, must_end=True)


async def test_a_call_that_fails_after_the_cancel_is_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    runs, may_fail = threading.Event(), threading.Event()

    def fail() -> None:
        runs.set()
        assert may_fail.wait(PATIENCE_S)
        raise OSError("disk")

    awaiting = asyncio.create_task(run_in_thread(fail, must_end=True))
    await asyncio.to_thread(runs.wait, 20)
    awaiting.cancel()
    await asyncio.sleep(0)
    may_fail.set()
    await asyncio.wait([awaiting], timeout=PATIENCE_S)

    assert awaiting.cancelled()
    assert caplog.records == []
