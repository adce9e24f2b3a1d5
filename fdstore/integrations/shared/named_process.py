"""One process of a store of either kind: of a conversation, or of an adapter that keeps files or results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from fdstore.errors import NotFound, QuotaExceeded
from fdstore.integrations.shared.any_store import AnyStore, check_store, run_async
from fdstore.integrations.shared.close_oldest import FULL
from fdstore.model.records import Descriptor, TreeLimits
from fdstore.store.keys import check_root
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import processes
from fdstore.wire.operation import Operation

T = TypeVar("T")
Work: TypeAlias = Callable[[ProcessHandle], Operation[T]]


class NamedProcess:
    """A process that is opened on first use, and again if it was removed.

    store      of `fdstore.connect`, whose calls run in threads, or of `fdstore.aio.connect`
    limits     of its tree, if it is made here
    make_room  closes descriptors where the tree is full, and returns them. None: none is closed

    Raises `InvalidArgument`.

    >>> import asyncio
    >>> from fdstore.store.contents.contents import create
    >>> files = NamedProcess(store, "files")
    >>> asyncio.run(files.run(lambda handle: create(handle, "text", name="name:a.txt"))).fd
    'name:a.txt'
    >>> store.process("files").read("name:a.txt").text
    'text'
    """

    def __init__(
        self,
        store: AnyStore,
        name: str,
        limits: TreeLimits | None = None,
        make_room: Work[list[Descriptor]] | None = None,
    ) -> None:
        self._store, self._limits, self._make_room = check_store(store), limits or TreeLimits(), make_room
        self.name = check_root(name)
        self.first_fd = 1
        """The number that its descriptors begin with if it is made here."""
        self.handle: ProcessHandle | None = None
        """None: it has not been opened. It stays when the process is made again, so that no id of the removed
        one comes to mean another text."""

    def use(self, work: Work[T]) -> Operation[T]:
        """Do some work with the process, again as often as room is made for it. Raises what it raises."""
        while True:
            try:
                return (yield from self._once(work))
            except QuotaExceeded as error:
                if self._make_room is None or error.limit not in FULL:
                    raise
                if not (yield from self._once(self._make_room)):
                    raise

    async def run(self, work: Work[T]) -> T:
        """`use`, awaited."""
        return await run_async(self._store, self.use(work))

    def _once(self, work: Work[T]) -> Operation[T]:
        if self.handle is None:
            opened = yield from self._open()
            self.handle = self.handle or opened
        handle = self.handle
        try:
            if handle.must_touch():
                yield from processes.touch(handle)
            return (yield from work(handle))
        except NotFound:
            yield from self._open()
            return (yield from work(handle))

    def _open(self) -> Operation[ProcessHandle]:
        """Open the process, or create it."""
        store = self._store
        return processes.open_process(store.prefix, store.where, self.name, self._limits, self.first_fd)
