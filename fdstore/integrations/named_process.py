"""One process of a store of either kind, for adapters that keep files or results by their keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fdstore.errors import NotFound, QuotaExceeded
from fdstore.integrations.room import FULL, close_oldest
from fdstore.integrations.steps import AnyStore, Steps, check_store, run_async
from fdstore.model.records import TreeLimits
from fdstore.store.keys import check_root


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
        self._store = check_store(store)
        self._name = check_root(name)
        self._limits, self._keep_s = limits, keep_s
        self._process: Any = None

    async def run(self, work: Callable[[Any], Any]) -> Any:
        """Return what a call of the process returns. Raises what it raises."""
        return await run_async(self._store, self._steps(work))

    def _steps(self, work: Callable[[Any], Any]) -> Steps[Any]:
        """Do the work, and make room for it as often as the tree is full."""
        while True:
            try:
                return (yield from self._once(work))
            except QuotaExceeded as error:
                if error.limit not in FULL or self._keep_s is None:
                    raise
                if not (yield from close_oldest(self._process, self._keep_s, "name:")):
                    raise

    def _once(self, work: Callable[[Any], Any]) -> Steps[Any]:
        """Do the work. A root process that was removed is created again."""
        if self._process is None:
            self._process = yield self._open
        try:
            return (yield lambda: work(self._process))
        except NotFound:
            yield self._open
            return (yield lambda: work(self._process))

    def _open(self) -> Any:
        return self._store.process(self._name, limits=self._limits)
