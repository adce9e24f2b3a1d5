"""The state of a running inspector: its store, its options, and how data are loaded from a store that
may be away.

The client of a store waits up to 10 s for a Redis that does not answer. A person should not: a page is
given up after the page's own time, and while Redis is known to be away, each request begins with one
attempt to connect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from fdstore.client._async.store import Store
from fdstore.errors import StoreUnavailable, UnknownOutcome
from fdstore.web.page import Page, View
from fdstore.web.rendering import make_environment
from fdstore.wire._async.cluster import make_runner

T = TypeVar("T")

REACH_S = 1.0
"""How long an attempt to connect may take."""

PATIENCE_S = 0.7
"""After this time of silence, another connection is tried."""

MAX_LIVE = 64
"""Pages that browsers may show live at the same time."""

Connect = Callable[[], Awaitable[Store]]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the operator. `hosts` are the names by which browsers may call; without a `token`
    everyone who reaches the server may look."""

    hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")
    token: str | None = None
    may_kill: bool = False


class Inspector:
    """`store` is opened for looking; `connect_to_kill` opens one that may cancel processes. `stopping`
    is set when the server stops."""

    def __init__(self, store: Store, options: Options, connect_to_kill: Connect | None = None) -> None:
        self.store = store
        self.options = options
        self.connect_to_kill = connect_to_kill
        self.stopping = asyncio.Event()
        self.templates = make_environment()
        self.live = 0
        self._is_away = False

    async def load(self, page: Page, view: View) -> Any:
        """Return the data of a page. Raises `StoreUnavailable` soon, and what the page raises."""
        return await self.within(page.timeout_s, lambda: page.load(view))

    async def within(self, seconds: float, call: Callable[[], Awaitable[T]]) -> T:
        """Call something that reads the store. Raises `StoreUnavailable` if it takes longer, and sooner
        if Redis takes no connection."""
        if self._is_away:
            await self._reach()
        task = asyncio.ensure_future(call())
        try:
            await asyncio.wait({task}, timeout=PATIENCE_S)
            if not task.done():
                await self._reach()
                await asyncio.wait({task}, timeout=seconds)
            if not task.done():
                raise self._away("does not answer in time")
            found = task.result()
        except (StoreUnavailable, UnknownOutcome) as error:
            self._is_away = True
            raise error if isinstance(error, StoreUnavailable) else self._away(str(error)) from error
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        self._is_away = False
        return found

    async def _reach(self) -> None:
        """Make one attempt to connect. Raises `StoreUnavailable`."""
        probe = make_runner(self.store.url)
        try:
            async with asyncio.timeout(REACH_S):
                await probe.reach()
        except TimeoutError:
            raise self._away("does not answer in time") from None
        finally:
            await probe.close()

    def _away(self, problem: str) -> StoreUnavailable:
        return StoreUnavailable(self.store.where, problem)
