"""The blocking variants of what the runners import; `_async.support` has the asynchronous ones."""

from __future__ import annotations

import queue
import threading
import time
from time import sleep
from typing import Any

from redis.exceptions import TimeoutError as LostReply

from fdstore.wire.operation import Disk
from fdstore.wire.store_url import make_pool

__all__ = ["THROWN", "connect_within", "make_pool", "run_call", "sleep"]

THROWN = (Exception, KeyboardInterrupt)
"""Exceptions thrown into an operation; on KeyboardInterrupt it may clean up."""


def run_call(disk: Disk) -> Any:
    """Run a call that may do disk I/O, and return its result."""
    return disk.call()


def connect_within(connection: Any, seconds: float) -> None:
    """Connect, in at most `seconds` in all: for the look-up of names, each address and each step of the
    handshake. Raises redis-py's errors.

    The first of these cannot be interrupted, so it runs on a thread. If the time is over, the thread closes
    the connection when it has one.
    """
    until = time.monotonic() + seconds
    ended: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
    turn, is_given_up = threading.Lock(), False

    def connect() -> None:
        problem = None
        try:
            connection.connect()
        except Exception as error:  # noqa: BLE001  raised again in the caller's thread
            problem = error
        with turn:
            if is_given_up:
                connection.disconnect()
            ended.put(problem)

    threading.Thread(target=connect, name="fdstore-connect", daemon=True).start()
    is_over = False
    try:
        problem = ended.get(timeout=max(seconds, 0.0))
        is_over = True
    except queue.Empty:
        raise LostReply(f"no connection within {seconds:g} s") from None
    finally:
        if not is_over:
            with turn:
                is_given_up = True
                if not ended.empty():
                    connection.disconnect()
    if isinstance(problem, LostReply) and time.monotonic() >= until:
        raise LostReply(f"no connection within {seconds:g} s") from problem
    if problem is not None:
        raise problem
