"""The blocking variants of what the runners import; `_async.support` has the asynchronous ones."""

from __future__ import annotations

from time import sleep
from typing import Any

from fdstore.wire.operation import Disk
from fdstore.wire.store_url import make_pool

__all__ = ["THROWN", "current_loop", "make_pool", "run_call", "sleep"]

THROWN = (Exception, KeyboardInterrupt)
"""Exceptions thrown into an operation; on KeyboardInterrupt it may clean up."""


def current_loop() -> object:
    """Return None: blocking connections belong to no event loop."""
    return None


def run_call(disk: Disk) -> Any:
    """Run a call that may do disk I/O, and return its result."""
    return disk.call()
