"""One process of a store of either kind, for adapters that keep files or results by their keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from operator import methodcaller
from typing import Any

import fdstore.aio
from fdstore.client import Store
from fdstore.errors import InvalidArgument, NotFound, QuotaExceeded
from fdstore.integrations.room import FULL, oldest
from fdstore.records import TreeLimits
from fdstore.store.keys import check_root

AnyStore = Store | fdstore.aio.Store


class NamedProcess:
    """A process that is opened on first use, and again if it was removed.

    store   of `fdstore.connect`, whose calls run in threads, or of `fdstore.aio.connect`
    limits  of its tree, if it is made here
    keep_s  where the tree is full, names older than this are closed, in seconds. None: none is

    Raises `InvalidArgument`.

    >>> import asyncio
    >>> files = NamedProcess(store, "files")
    >>> asyncio.run(files.run(lambda process: process.put("a.txt", "text"))).fd
    'name:a.txt'
    >>> store.process("files").read("name:a.txt").text
    'text'
    """

    def __init__(
        self, store: AnyStore, name: str, limits: TreeLimits | None = None, keep_s: float | None = None
    ) -> None:
        if not isinstance(store, (Store, fdstore.aio.Store)):
            raise InvalidArgument("store", "a connected store is needed, as fdstore.connect() returns it")
        self._store = store
        self._name = check_root(name)
        self._limits, self._keep_s = limits, keep_s
        self._process: Any = None

    async def run(self, work: Callable[[Any], Any]) -> Any:
        """Return what a call of the process returns. Raises what it raises."""
        while True:
            try:
                return await self._run_once(work)
            except QuotaExceeded as error:
                if error.limit not in FULL or not await self._make_room():
                    raise

    async def _make_room(self) -> bool:
        """Close the oldest names. Return whether there were any."""
        if self._keep_s is None:
            return False
        found = await self._run_once(methodcaller("list"))
        released = oldest(found, self._keep_s, "name:")
        for each in released:
            with suppress(NotFound):  # another one closed it
                await self._run_once(methodcaller("close", each.fd))
        return bool(released)

    async def _run_once(self, work: Callable[[Any], Any]) -> Any:
        if isinstance(self._store, Store):
            return await asyncio.to_thread(self._run, work)
        if self._process is None:
            self._process = await self._store.process(self._name, limits=self._limits)
        try:
            return await work(self._process)
        except NotFound:
            await self._store.process(self._name, limits=self._limits)
            return await work(self._process)

    def _run(self, work: Callable[[Any], Any]) -> Any:
        store: Any = self._store
        if self._process is None:
            self._process = store.process(self._name, limits=self._limits)
        try:
            return work(self._process)
        except NotFound:
            store.process(self._name, limits=self._limits)
            return work(self._process)
