"""What every part of `Process` uses: its handle, and how an operation on it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import processes
from fdstore.wire.operation import Operation

if TYPE_CHECKING:
    from fdstore.client._async.store import Store

T = TypeVar("T")


class ProcessBase:
    """A process of a store."""

    def __init__(self, store: Store, handle: ProcessHandle) -> None:
        self.store = store
        self.handle = handle

    def __repr__(self) -> str:
        return f"<fdstore.aio.Process {self.id}>"

    @property
    def id(self) -> str:
        """Its name: `triage`, or `triage.1` for a child.

        >>> (await proc.child()).id
        'triage.1'
        """
        return self.handle.id

    async def _run(self, operation: Operation[T]) -> T:
        if self.handle.must_touch():
            await self.store.run(processes.touch(self.handle))
        return await self.store.run(operation)
