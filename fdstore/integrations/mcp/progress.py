"""Progress of a call for the client: the latest state, a few times a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from fdstore.results.context import Progress

EVERY_S = 0.25
"""The shortest time between two notifications."""

Report = Callable[[float, float | None], Awaitable[None]]


@asynccontextmanager
async def reported(report: Report | None) -> AsyncIterator[Progress | None]:
    """Yield the function that a call tells its progress; the client gets it through `report`, and the last
    state in any case. Without `report` yield None."""
    if report is None:
        yield None
        return
    latest: list[tuple[int, int | None]] = []
    changed = asyncio.Event()

    def tell(done: int, total: int | None) -> None:
        latest[:] = [(done, total)]
        changed.set()

    async def forward() -> None:
        while True:
            await changed.wait()
            changed.clear()
            await report(*latest[0])
            await asyncio.sleep(EVERY_S)

    forwarding = asyncio.create_task(forward(), name="fdstore progress")
    try:
        yield tell
    finally:
        forwarding.cancel()
        await asyncio.wait([forwarding])
    if changed.is_set():
        await report(*latest[0])
