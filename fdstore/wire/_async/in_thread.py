"""Awaited calls in threads, and what a cancel does to them: a thread cannot be stopped.

must_end   the call uses what its caller releases when it is cancelled (files, descriptors): the cancel is
           passed on when the call has ended; one that has not begun never begins
else       the cancel is passed on at once, and the call goes on by itself
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
        self._call_id = call
        self._begins = threading.Lock()

    def __call__(self) -> Any:
        return self._call_id() if self._begins.acquire(blocking=False) else None

    def keep_from_beginning(self) -> bool:
        """Return False if it has begun, else keep it from that."""
        return self._begins.acquire(blocking=False)


async def run_in_thread(call: Callable[[], Any], *, must_end: bool) -> Any:
    """Return what `call` returns, run in a thread of the event loop's pool."""
    if not must_end:
        return await asyncio.to_thread(call)
    once = _Call(call)
    loop = asyncio.get_running_loop()
    # a future and no task, which the end of the event loop would cancel while the thread goes on
    ended = loop.run_in_executor(None, contextvars.copy_context().run, once)
    try:
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        if not once.keep_from_beginning():
            while not ended.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([ended])
            ended.exception()  # or asyncio would log that nothing asked for it
        raise
