"""What is done in another way where one awaits: see `_sync.support`."""

from __future__ import annotations

from asyncio import sleep
from typing import Any

from fdstore.errors import FDStoreError
from fdstore.wire._async.in_thread import run_in_thread
from fdstore.wire.operation import Disk
from fdstore.wire.store_url import make_async_pool as make_pool

__all__ = ["THROWN", "make_pool", "run_call", "sleep"]

THROWN = (FDStoreError,)
"""What an operation is told of. Not of a cancel: whoever cancels does not wait for what would follow."""


async def run_call(disk: Disk) -> Any:
    """Return what a call that may wait for a disk returns; it runs in a thread."""
    return await run_in_thread(disk.call, must_end=disk.must_end)
