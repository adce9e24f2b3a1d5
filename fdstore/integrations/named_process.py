"""One process of a store of either kind, for adapters that keep files or results by their keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import fdstore.aio
from fdstore.client import Store
from fdstore.errors import InvalidArgument, NotFound
from fdstore.store.keys import check_root

AnyStore = Store | fdstore.aio.Store


class NamedProcess:
    """A process that is opened on first use, and again if it was removed.

    store  of `fdstore.connect`, whose calls run in threads, or of `fdstore.aio.connect`

    Raises `InvalidArgument`.

    >>> import asyncio
    >>> files = NamedProcess(store, "files")
    >>> asyncio.run(files.run(lambda process: process.put("a.txt", "text"))).fd
    'name:a.txt'
    >>> store.process("files").read("name:a.txt").text
    'text'
    """

    def __init__(self, store: AnyStore, name: str) -> None:
        if not isinstance(store, (Store, fdstore.aio.Store)):
            raise InvalidArgument("store", "a connected store is needed, as fdstore.connect() returns it")
        self._store = store
        self._name = check_root(name)
        self._process: Any = None

    async def run(self, work: Callable[[Any], Any]) -> Any:
        """Return what a call of the process returns. Raises what it raises."""
        if isinstance(self._store, Store):
            return await asyncio.to_thread(self._run, work)
        if self._process is None:
            self._process = await self._store.process(self._name)
        try:
            return await work(self._process)
        except NotFound:
            await self._store.process(self._name)
            return await work(self._process)

    def _run(self, work: Callable[[Any], Any]) -> Any:
        store: Any = self._store
        if self._process is None:
            self._process = store.process(self._name)
        try:
            return work(self._process)
        except NotFound:
            store.process(self._name)
            return work(self._process)
