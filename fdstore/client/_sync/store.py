# Generated from fdstore/client/_async/store.py by `make generate`: change that one.
"""`connect` and `Store`: a connection to Redis, and the processes and trees in it.

In the examples `store` is connected, and `proc` is a new process in it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from fdstore.client._sync.process import Process
from fdstore.client._sync.support import find_store
from fdstore.records import DroppedTree, ProcessRecord, Survey, TreeLimits, TreeRecord
from fdstore.store.doctor.check import check_server
from fdstore.store.processes import dropping, process_records, processes
from fdstore.store.read_only import read_only
from fdstore.telemetry import tracing
from fdstore.wire._sync.cluster import make_runner
from fdstore.wire._sync.runner import Runner
from fdstore.wire.operation import Operation

T = TypeVar("T")


def connect(url: str | None = None, prefix: str | None = None, *, looking: bool = False) -> Store:
    """Connect to the Redis at `url`, else at `$FDSTORE_URL`, else to the embedded server, which is
    started if needed. The URL names a single Redis (`redis://`, `rediss://`, `unix://`), Sentinels
    (`sentinel://HOST,HOST/MASTER`) or a Redis Cluster (`redis+cluster://HOST,HOST`). All keys start with
    `prefix` (default: `$FDSTORE_PREFIX`, else "fdstore").

    With `looking` the store is read-only: an unsafe Redis is accepted too, and every write raises
    `UnsafeStore`.

    Raises `StoreUnavailable` if Redis does not answer, `UnsafeStore` if it is older than 6.2 or evicts keys,
    `InvalidArgument` for an invalid URL or prefix.

    >>> with fdstore.connect() as store:
    ...     proc = store.process("triage")
    ...     d = proc.create("hello")
    >>> d.fd
    'fd:1'
    """
    return _connect(url, prefix, safe=not looking, looking=looking)


def connect_unsafe(url: str | None, prefix: str | None, *, looking: bool) -> Store:
    """Connect to any Redis that answers, an unsafe one too: for commands that only read (`looking`) or only
    remove."""
    return _connect(url, prefix, safe=False, looking=looking)


def _connect(url: str | None, prefix: str | None, *, safe: bool, looking: bool) -> Store:
    tracing.turn_on_if_provided()
    url, prefix = find_store(url, prefix)
    return open_store(make_runner(url), prefix, url, safe=safe, looking=looking)


def open_store(runner: Runner, prefix: str, url: str, *, safe: bool = True, looking: bool = False) -> Store:
    """Connect by a runner, and check the server as `connect` does."""
    store = Store(runner, prefix, url, looking=looking)
    try:
        store.reach()
        if not store.run(check_server(store.where, safe=safe)):
            runner.scripts.forget()
    except BaseException:
        store.close()
        raise
    return store


class Store:
    """A connection to Redis, created by `connect`. The blocking one is thread-safe and reconnects after a
    fork; the asyncio one belongs to the event loop it was connected in until it is closed, and raises
    `WrongEventLoop` in another. A context manager closes it.

    >>> proc = store.process("triage")
    >>> [tree.id for tree in store.trees()]
    ['triage']
    """

    def __init__(self, runner: Runner, prefix: str, url: str, *, looking: bool = False) -> None:
        self._runner = runner
        self._looking = looking
        self.prefix = prefix
        self.url = url

    def __repr__(self) -> str:
        return f"<fdstore.Store {self.where} prefix={self.prefix!r}>"

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def where(self) -> str:
        """The URL without its password.

        >>> with fdstore.connect() as store:
        ...     store.where.partition(":")[0]
        'unix'
        """
        return self._runner.where

    def reach(self) -> None:
        """Connect now, without retries, so that a wrong URL fails immediately and not after the retry
        deadline. Raises `StoreUnavailable`.

        >>> store.reach()
        """
        self._runner.reach()

    def close(self) -> None:
        """Close the connections. The store can be used again.

        >>> store.close()
        """
        self._runner.close()

    def run(self, operation: Operation[T]) -> T:
        """Run one operation of `fdstore.store` and return its result. Raises what the operation raises.

        >>> from fdstore.store.clock import redis_now
        >>> store.run(redis_now()) > 1.7e9
        True
        """
        if self._looking:
            operation = read_only(operation, self.where)
        if tracing.tracer is not None:
            with tracing.operation(operation):
                return self._runner.run(operation)
        return self._runner.run(operation)

    def process(self, name: str | None = None, *, limits: TreeLimits | None = None) -> Process:
        """Open the root process `name`, or create it with its tree; a child ("triage.1") must exist. Without
        a name, create a process with a generated one. `limits` apply to a tree created by this call.

        Raises `InvalidArgument` (the name, a limit), `NotFound` (the child does not exist).

        >>> proc = store.process("triage")
        >>> proc.id
        'triage'
        """
        handle = self.run(processes.open_process(self.prefix, name, limits or TreeLimits()))
        return Process(self, handle)

    def processes(self) -> list[ProcessRecord]:
        """Return the processes of all trees, ended ones too, ordered by tree and creation time. Damaged ones
        are skipped with a warning in the log; `survey` names them.

        >>> child = proc.child()
        >>> [(member.id, member.state) for member in store.processes()]
        [('triage', 'open'), ('triage.1', 'open')]
        """
        return [member for tree in self.trees() for member in tree.members]

    def trees(self) -> list[TreeRecord]:
        """Return all trees, ordered by name. Damaged ones are skipped as by `processes`.

        >>> other = store.process("other")
        >>> [tree.id for tree in store.trees()]
        ['other', 'triage']
        """
        return process_records.log_unreadable(self.survey()).trees

    def survey(self) -> Survey:
        """Return all trees, and a list of what cannot be read: damaged trees and processes, and trees in a
        newer format.

        >>> found = store.survey()
        >>> len(found.trees), found.unreadable
        (1, [])
        """
        return self.run(process_records.survey(self.prefix))

    def tree(self, name: str) -> TreeRecord:
        """Return one tree: its usage, its limits and its processes. Raises `NotFound`, `NewerFormat`,
        `DamagedRecord`.

        >>> d = proc.create("one")
        >>> tree = store.tree("triage")
        >>> tree.fds, tree.bytes, tree.limits.tree_fds
        (1, 3, 10000)
        """
        return self.run(process_records.tree_record(self.prefix, name))

    def drop_tree(
        self, name: str, kill: bool = False, *, progress: Callable[[int], None] | None = None
    ) -> DroppedTree:
        """Remove a tree permanently, with all its processes, descriptors and journals. Its memory is freed
        soon after; a full Redis does not prevent it. An interrupted removal is completed by the next call.
        `progress` is called with the number of contents removed so far.

        Raises `TreeInUse` while one of its agents or pipelines runs or waits, unless `kill` is set;
        `NotFound`, `NewerFormat`.

        >>> d = proc.create("one")
        >>> store.drop_tree("triage").contents
        1
        """
        operation = dropping.drop_tree(self.prefix, name, kill=kill, progress=progress)
        return self.run(operation)
