"""The inspector in this process: its app without a network, or a server of it in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import httpx2

import fdstore.aio
from fdstore.client._async.store import connect_unsafe
from fdstore.http.address import listen, origin_of
from fdstore.http.server import HttpServer
from fdstore.inspector.web.app import make_app
from fdstore.inspector.web.inspector import Inspector, Options
from tests.round_trips import Tally, tallied
from tests.waiting import PATIENCE_S

T = TypeVar("T")
Get = Callable[..., Any]
Inspect = Callable[..., Any]
"""Both as the fixtures of conftest.py."""

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


class Served:
    """An inspector that a server in a thread serves until the end of the block; `url` has no path."""

    def __init__(self, redis_url: str, **options: Any) -> None:
        self._ready = threading.Event()
        main = self._serve(redis_url, Options(**options))
        self._thread = threading.Thread(target=asyncio.run, args=(main,))

    async def _serve(self, redis_url: str, options: Options) -> None:
        async with await fdstore.aio.connect(redis_url, looking=True) as store:
            self.inspector = Inspector(store, options, lambda: connect_unsafe(redis_url, None, looking=False))
            with listen("127.0.0.1", 0) as listening:
                server = HttpServer(make_app(self.inspector), self.inspector.stopping)
                loop = asyncio.get_running_loop()
                self._stop = lambda: loop.call_soon_threadsafe(setattr, server, "should_exit", True)
                self.url = origin_of(listening)
                self._ready.set()
                await server.serve(sockets=[listening])

    def __enter__(self) -> Served:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S), "the inspector did not start"
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


def walk(get: Get, path: str) -> Iterator[Any]:
    """Yield the twin of a page, and those of the pages that follow it."""
    start = 0
    while start is not None:
        page = get(f"{path}{'&' if '?' in path else '?'}from={start}").json()
        page = page.get("compared", page)
        yield page
        start = page["next"]


def get(redis_url: str, *paths: str, headers: dict[str, str] | None = None, **options: Any) -> Any:
    """Return the response of a path, or the responses of several."""

    async def visit(client: httpx2.AsyncClient) -> list[httpx2.Response]:
        return [await client.get(path, headers=headers) for path in paths]

    found = inspect(redis_url, visit, **options)
    return found[0] if len(paths) == 1 else found
