"""`connect` and `Store`: a connection to Redis, and the processes and trees in it.

In the examples `store` is connected, and `proc` is a new process in it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from types import TracebackType
from typing import Any, TypeVar

from fdstore.client._async.process import Process
from fdstore.client._async.support import find_store
from fdstore.errors import InvalidArgument, StoreUnavailable, quoted
from fdstore.model.people import GivenAnswer, PersonAnswer, Question
from fdstore.model.records import DroppedTree, ProcessRecord, Survey, TreeLimits, TreeRecord
from fdstore.store.doctor.check import check_server
from fdstore.store.processes import dropping, people, process_records, processes
from fdstore.store.read_only import read_only, traced
from fdstore.store.views.store_meter import observe_if_provided
from fdstore.telemetry import tracing
from fdstore.text.quantities import DAY_S
from fdstore.wire._async.cluster import make_runner
from fdstore.wire._async.runner import Runner
from fdstore.wire.operation import Operation, Working
from fdstore.wire.tls_hints import add_hint

T = TypeVar("T")

MAX_PATIENCE_S = 365 * DAY_S


async def connect(
    url: str | None = None,
    prefix: str | None = None,
    *,
    looking: bool = False,
    patience: float | None = None,
) -> Store:
    """Connect to the Redis at `url`, else at `$FDSTORE_URL`, else to the embedded server, which is
    started if needed. The URL names a single Redis (`redis://`, `rediss://`, `unix://`), Sentinels
    (`sentinel://HOST,HOST/MASTER`) or a Redis Cluster (`redis+cluster://HOST,HOST`). All keys start with
    `prefix` (default: `$FDSTORE_PREFIX`, else "fdstore").

    With `looking` the store is read-only: an unsafe Redis is accepted too, and every write raises
    `UnsafeStore`.

    A call waits while Redis does not answer, or refuses what it will do later: it is busy with a script,
    loads its data, fails over, or has too few replicas. `patience` limits the time, in seconds, including
    name resolution, connecting and retries. After a call that timed out, calls raise its error at once,
    without a connection; after 1 s one of them tries Redis again, then after 2, 4 ... 30 s, until it answers.
    By default every call is retried for 10 s.

    Raises `StoreUnavailable` if Redis does not answer, `UnsafeStore` if it is older than 6.2 or evicts keys,
    `InvalidArgument` for an invalid URL, prefix or patience.

    >>> async with await fdstore.aio.connect(patience=0.5) as store:
    ...     proc = await store.process("triage")
    ...     d = await proc.create("hello")
    >>> d.fd
    'fd:1'
    """
    return await Connector(url, prefix, looking=looking, patience=patience).connect()


async def connect_unsafe(url: str | None, prefix: str | None, *, looking: bool) -> Store:
    """Connect to any Redis that answers, an unsafe one too: for commands that only read (`looking`) or only
    remove."""
    return await Connector(url, prefix, safe=False, looking=looking).connect()


class Connector:
    """Connects to one store, as `connect` does, any number of times: with patience, a store that did not
    answer the last attempt is not tried again at once. All its stores share their connections."""

    def __init__(
        self,
        url: str | None,
        prefix: str | None,
        *,
        safe: bool = True,
        looking: bool = False,
        patience: float | None = None,
    ) -> None:
        if patience is not None and not (type(patience) in (int, float) and 0 < patience <= MAX_PATIENCE_S):
            said = f"seconds above 0 are needed, at most {MAX_PATIENCE_S}, not {quoted(patience)}"
            raise InvalidArgument("patience", said)
        self._named = url, prefix
        self._safe, self._looking, self._patience = safe and not looking, looking, patience
        self._found: tuple[Runner, str, str] | None = None

    async def connect(self) -> Store:
        """Return a connected store. Raises as `connect`."""
        tracing.turn_on_if_provided()
        if self._found is None:
            url, prefix = await find_store(*self._named)
            self._found = make_runner(url, self._patience), prefix, url
        observe_if_provided(self._found[0], url=self._found[2], prefix=self._found[1])
        return await open_store(*self._found, safe=self._safe, looking=self._looking)


async def open_store(
    runner: Runner, prefix: str, url: str, *, safe: bool = True, looking: bool = False
) -> Store:
    """Connect by a runner, and check the server as `connect` does."""
    store = Store(runner, prefix, url, looking=looking)
    try:
        await store.reach()
        if not await store.run(check_server(store.where, safe=safe)):
            runner.scripts.forget()
    except BaseException as error:
        await store.close()
        if isinstance(error, StoreUnavailable):
            add_hint(error)
        raise
    return store


class Store:
    """A connection to Redis, created by `connect`. The blocking one is thread-safe and reconnects after a
    fork; the asyncio one belongs to the event loop it was connected in until it is closed, and raises
    `WrongEventLoop` in another. A context manager closes it.

    >>> proc = await store.process("triage")
    >>> [tree.id for tree in await store.trees()]
    ['triage']
    """

    def __init__(
        self,
        runner: Runner,
        prefix: str,
        url: str,
        *,
        looking: bool = False,
        working: bool = False,
    ) -> None:
        self._runner = runner
        self._looking = looking
        self._is_working = working
        self._patient: Store | None = None
        self._working: Store | None = None
        self.prefix = prefix
        self.url = url

    def __repr__(self) -> str:
        return f"<fdstore.aio.Store {self.where} prefix={self.prefix!r}>"

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def where(self) -> str:
        """The URL without its password.

        >>> async with await fdstore.aio.connect() as store:
        ...     store.where.partition(":")[0]
        'unix'
        """
        return self._runner.where

    async def reach(self) -> None:
        """Connect now, without retries, so that a wrong URL fails immediately and not after the retry
        deadline. With patience the server must also answer. Raises `StoreUnavailable`.

        >>> await store.reach()
        """
        await self._runner.reach()

    async def close(self) -> None:
        """Close the connections. The store can be used again.

        >>> await store.close()
        """
        if self._patient is not None:
            await self._patient.close()
        await self._runner.close()

    def with_patience(self, seconds: float) -> Store:
        """Return a store with patience (see `connect`): this one if it has some, else another one for the
        same keys, with connections of its own, which is closed with this one.

        >>> patient = store.with_patience(0.5)
        >>> await patient.processes() == await store.processes(), patient.with_patience(2) is patient
        (True, True)
        """
        if self._runner.patience_s is not None:
            return self
        if self._patient is None:
            runner = make_runner(self.url, seconds)
            self._patient = Store(
                runner, self.prefix, self.url, looking=self._looking, working=self._is_working
            )
        return self._patient

    def for_work(self) -> Store:
        """Return this store for work that runs, such as an agent: its calls wait for a Redis that is full or
        whose disk failed, as for one that does not answer. Other calls raise `StoreFull` or `StoreReadOnly`
        at once, so that their caller can act.

        >>> working = store.for_work()
        >>> await working.processes() == await store.processes(), working.for_work() is working
        (True, True)
        """
        if self._is_working:
            return self
        if self._working is None:
            self._working = copy(self)
            self._working._is_working = True
        return self._working

    async def run(self, operation: Operation[T]) -> T:
        """Run one operation of `fdstore.store` and return its result. Raises what the operation raises.

        >>> from fdstore.store.clock import redis_now
        >>> await store.run(redis_now()) > 1.7e9
        True
        """
        if self._looking:
            operation = read_only(operation, self.where)
        if tracing.tracer is not None:
            operation = traced(operation)
        return await self._runner.run(self._marked(operation))

    def _marked(self, operation: Operation[T]) -> Operation[T]:
        return Working(operation) if self._is_working else operation

    async def process(
        self, name: str | None = None, *, limits: TreeLimits | None = None, first_fd: int = 1
    ) -> Process:
        """Open the root process `name`, or create it with its tree; a child ("triage.1") must exist. Without
        a name, create a process with a generated one. `limits` and `first_fd` apply to a tree created by
        this call: its descriptors begin with that number, or above those of a removed tree of its name.
        With a conversation that was kept, give one above its ids, so that none comes to mean another text.

        Raises `InvalidArgument` (the name, a limit, the number), `NotFound` (the child does not exist).

        >>> proc = await store.process("triage")
        >>> proc.id
        'triage'
        """
        operation = processes.open_process(self.prefix, self.where, name, limits or TreeLimits(), first_fd)
        return Process(self, await self.run(operation))

    async def processes(self) -> list[ProcessRecord]:
        """Return the processes of all trees, ended ones too, ordered by tree and creation time. Damaged ones
        are skipped with a warning in the log; `survey` names them.

        >>> child = await proc.child()
        >>> [(member.id, member.state) for member in await store.processes()]
        [('triage', 'open'), ('triage.1', 'open')]
        """
        return [member for tree in await self.trees() for member in tree.members]

    async def trees(self) -> list[TreeRecord]:
        """Return all trees, ordered by name. Damaged ones are skipped as by `processes`.

        >>> other = await store.process("other")
        >>> [tree.id for tree in await store.trees()]
        ['other', 'triage']
        """
        return process_records.log_unreadable(await self.survey()).trees

    async def survey(self) -> Survey:
        """Return all trees, and a list of what cannot be read: damaged trees and processes, and trees in a
        newer format.

        >>> found = await store.survey()
        >>> len(found.trees), found.unreadable
        (1, [])
        """
        return await self.run(process_records.survey(self.prefix))

    async def tree(self, name: str) -> TreeRecord:
        """Return one tree: its usage, its limits and its processes. Raises `NotFound`, `NewerFormat`,
        `DamagedRecord`.

        >>> d = await proc.create("one")
        >>> tree = await store.tree("triage")
        >>> tree.fds, tree.bytes, tree.limits.tree_fds
        (1, 3, 10000)
        """
        return await self.run(process_records.tree_record(self.prefix, name))

    async def questions(self, tree: str | None = None) -> list[Question]:
        """Return the open questions of agents to a person, of one tree or of all, oldest first. Damaged ones
        are skipped as by `processes`. Raises `NotFound`.

        >>> await store.questions()
        []
        """
        found = await self.run(people.open_questions(self.prefix, tree))
        people.log_unreadable(found)
        return found.questions

    async def answer(
        self,
        process: str,
        text: str | None = None,
        *,
        question: int | None = None,
        choice: int | None = None,
        approve: bool | None = None,
        reason: str = "",
        arguments: dict[str, Any] | None = None,
        by: str = "",
        door: str = "python",
    ) -> PersonAnswer:
        """Answer a question of an agent, which then goes on within some seconds. The first answer stays.

        text, choice  of a question: a text, or one of its `choices`, by its number from 1
        approve       of an approval: whether the call may run; `reason` says why not, to the model
        arguments     what the call is to run with instead of what was asked; the model is told
        question      its number, if the process asks several
        by, door      who answers, and by which way: in the journal, the log and the export

        Raises `InvalidArgument` for an answer that does not fit the question, `QuestionClosed` for a question
        that is answered, timed out or withdrawn, `NotFound`.

        >>> await store.answer("triage", approve=True, by="ann")
        Traceback (most recent call last):
        fdstore.errors.base.NotFound: an open question of process triage does not exist
        """
        given = GivenAnswer(
            text=text,
            question=question,
            choice=choice,
            approve=approve,
            reason=reason,
            arguments=arguments,
            by=by,
            door=door,
        )
        done = await self.run(people.answer(self.prefix, process, given))
        return done.answer

    async def drop_tree(
        self, name: str, kill: bool = False, *, progress: Callable[[int], None] | None = None
    ) -> DroppedTree:
        """Remove a tree permanently, with all its processes, descriptors and journals. Its memory is freed
        soon after; a full Redis does not prevent it. An interrupted removal is completed by the next call.
        `progress` is called with the number of contents removed so far.

        Raises `TreeInUse` while one of its agents or pipelines runs or waits, unless `kill` is set;
        `NotFound`, `NewerFormat`, `InvalidArgument`.

        >>> d = await proc.create("one")
        >>> (await store.drop_tree("triage")).contents
        1
        """
        operation = dropping.drop_tree(self.prefix, name, kill=kill, progress=progress)
        return await self.run(operation)
