"""Wake workers for processes that a request has made ready."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from fdstore.errors import InvalidArgument, MissingExtra
from fdstore.inspector.web.inspector import Inspector


async def wake_workers(inspector: Inspector, ready: Sequence[str]) -> None:
    """Wake the workers for these processes. Without a queue, their sweep finds them within some seconds."""
    if ready:
        with suppress(InvalidArgument, MissingExtra):
            await asyncio.to_thread(_wake, inspector, ready)


def _wake(inspector: Inspector, ready: Sequence[str]) -> None:
    from fdstore.agents.runtime.waker import waker

    wake = waker(inspector.store.url, inspector.store.prefix)
    for process in ready:
        wake(process)
