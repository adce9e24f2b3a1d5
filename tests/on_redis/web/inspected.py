"""The inspector in this process, without a network: requests go to its ASGI app."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx2

import fdstore.aio
from fdstore.client._async.store import connect_unsafe
from fdstore.web.app import make_app
from fdstore.web.inspector import Inspector, Options
from tests.round_trips import Tally, tallied

T = TypeVar("T")

ORIGIN = "http://127.0.0.1:8000"


def inspect(
    redis_url: str,
    visit: Callable[[httpx2.AsyncClient], Awaitable[T]],
    *,
    tally: Tally | None = None,
    **options: Any,
) -> T:
    """Return what `visit` returns, called with a client of an inspector of this store. The cost of its
    requests is added to `tally`."""

    async def main() -> T:
        async with await fdstore.aio.connect(redis_url, looking=True) as store:
            if tally is not None:
                run = store.run
                store.run = lambda operation: run(tallied(operation, tally))  # type: ignore[method-assign]
            inspector = Inspector(
                store, Options(**options), lambda: connect_unsafe(redis_url, None, looking=False)
            )
            transport = httpx2.ASGITransport(make_app(inspector))
            async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as client:
                return await visit(client)

    return asyncio.run(main())


def get(redis_url: str, *paths: str, headers: dict[str, str] | None = None, **options: Any) -> Any:
    """Return the response of a path, or the responses of several."""

    async def visit(client: httpx2.AsyncClient) -> list[httpx2.Response]:
        return [await client.get(path, headers=headers) for path in paths]

    found = inspect(redis_url, visit, **options)
    return found[0] if len(paths) == 1 else found
