"""The asynchronous variants of what the runners import; `_sync.support` has the blocking ones."""

from __future__ import annotations

import asyncio
from asyncio import sleep
from typing import Any

from redis.exceptions import TimeoutError as LostReply

from fdstore.wire._async.in_thread import run_in_thread
from fdstore.wire.operation import Disk
from fdstore.wire.store_url import make_async_pool as make_pool

__all__ = ["THROWN", "connect_within", "make_pool", "run_call", "sleep"]

THROWN = (Exception,)
"""Exceptions thrown into an operation. A cancellation is not: the canceller does not wait for a clean-up."""


async def run_call(disk: Disk) -> Any:
    """Run a call that may do disk I/O in a thread, and return its result."""
    return await run_in_thread(disk.call, must_end=disk.must_end)


async def connect_within(connection: Any, seconds: float) -> None:
    """Connect, in at most `seconds` in all: for the look-up of names, each address and each step of the
    handshake. Raises redis-py's errors."""
    try:
        async with asyncio.timeout(seconds):
            await connection.connect()
    except TimeoutError:
        raise LostReply(f"no connection within {seconds:g} s") from None
