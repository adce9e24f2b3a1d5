"""What is done in another way where one blocks: see `_async.support`."""

from __future__ import annotations

from time import sleep
from typing import Any

from fdstore.store.operation import Disk
from fdstore.store.places import make_pool

__all__ = ["make_pool", "run_call", "sleep"]


def run_call(disk: Disk) -> Any:
    """Return what a call that may wait for a disk returns."""
    return disk.call()
