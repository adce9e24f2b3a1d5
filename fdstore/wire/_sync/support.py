"""What is done in another way where one blocks: see `_async.support`."""

from __future__ import annotations

from time import sleep
from typing import Any

from fdstore.errors import FDStoreError
from fdstore.wire.operation import Disk
from fdstore.wire.store_url import make_pool

__all__ = ["THROWN", "make_pool", "run_call", "sleep"]

THROWN = (FDStoreError, KeyboardInterrupt)
"""What an operation is told of: at Ctrl-C it may put away what it began."""


def run_call(disk: Disk) -> Any:
    """Return what a call that may wait for a disk returns."""
    return disk.call()
