# Generated from fdstore/client/_async/process_base.py by `make generate`: change that one.
"""What every part of `Process` uses: its handle, and how an operation on it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import processes
from fdstore.wire.operation import Operation

if TYPE_CHECKING:
    from fdstore.client._sync.store import Store

T = TypeVar("T")


class ProcessBase:
    """A process of a store."""

    def __init__(self, store: Store, handle: ProcessHandle) -> None:
        self.store = store
        self.handle = handle

    def __repr__(self) -> str:
        return f"<fdstore.Process {self.id}>"

    @property
    def id(self) -> str:
        """Its name: `triage`, or `triage.1` for a child.

        >>> proc.child().id
        'triage.1'
        """
        return self.handle.id

    def _run(self, operation: Operation[T]) -> T:
        if self.handle.must_touch():
            self.store.run(processes.touch(self.handle))
        return self.store.run(operation)
