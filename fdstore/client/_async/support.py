"""The asyncio versions of primitives that differ between the two clients; see `_sync.support`."""

from __future__ import annotations

import asyncio
from asyncio import Event, Lock
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from fdstore.local.redis_server import resolve_store

__all__ = ["Event", "Lock", "find_store", "is_held_here", "join", "start", "wait_within"]


async def find_store(url: str | None, prefix: str | None) -> tuple[str, str]:
    """Resolve URL and prefix of a store as `resolve_store` does, in a thread."""
    return await asyncio.to_thread(resolve_store, url, prefix)


def is_held_here(lock: Lock) -> bool:
    """Return whether this code holds a lock already: no, since a task that holds one awaits what it does."""
    return False


async def wait_within(event: Event, seconds: float) -> None:
    """Wait until `event` is set, for at most `seconds`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def start(name: str, function: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> asyncio.Task[None]:
    """Start `function(*args)` in the background."""
    return asyncio.create_task(function(*args), name=name)


async def join(task: asyncio.Task[None]) -> None:
    """Wait until a background task has ended."""
    await asyncio.wait([task])
