"""Run calls in threads, with defined behaviour on cancellation: a running thread cannot be stopped.

must_end   the call uses resources that its caller releases when cancelled (files, descriptors): the
           cancellation is delayed until the call has ended; a call that has not begun never begins
otherwise  the cancellation takes effect immediately, and the call continues in its thread
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class _Call:
    """A call that begins once or never."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._function = call
        self._begun = threading.Lock()

    def __call__(self) -> Any:
        return self._function() if self._begun.acquire(blocking=False) else None

    def prevent(self) -> bool:
        """Prevent the call from beginning. Return False if it has begun already."""
        return self._begun.acquire(blocking=False)


async def run_in_thread(call: Callable[[], Any], *, must_end: bool) -> Any:
    """Run `call` in a thread of the event loop's pool and return its result."""
    if not must_end:
        return await asyncio.to_thread(call)
    once = _Call(call)
    loop = asyncio.get_running_loop()
    # a future instead of a task: closing the event loop would cancel a task while its thread runs on
    ended = loop.run_in_executor(None, contextvars.copy_context().run, once)
    try:
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        if not once.prevent():
            while not ended.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([ended])
            ended.exception()  # otherwise asyncio logs an exception that was never retrieved
        raise
