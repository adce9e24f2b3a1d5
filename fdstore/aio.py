"""The same surface as `fdstore`, awaited: every call that talks to Redis is a coroutine.

    import fdstore.aio

    store = await fdstore.aio.connect()
    proc = await store.process("triage")
    d = await proc.create(text)
    page = await proc.read(d.fd, start=2)

A store belongs to the event loop it was connected in. Files are read and written in threads. Arguments,
results and errors are those of `fdstore`. In the examples `store` is connected, `proc` is a new process of
it, `tools` a toolset of that, and `build.log` a file of 5000 lines; type them into `python -m asyncio`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from fdstore import toolset
from fdstore.aio_process import Process
from fdstore.aio_writer import StreamWriter
from fdstore.local.redis_server import chosen
from fdstore.records import DroppedTree, ProcessRecord, Survey, TreeLimits, TreeRecord
from fdstore.store import dropping, inspection, processes
from fdstore.store.check import check_server
from fdstore.store.looking import look_only
from fdstore.tools.config import FDConfig, ToolName
from fdstore.tools.tool import ToolResult
from fdstore.tools.toolbox import Toolbox
from fdstore.tools.wrapping import flattened, taken_references, wrapped_input, wrapped_once
from fdstore.wire._async.cluster import make_runner
from fdstore.wire._async.runner import Runner
from fdstore.wire.operation import Operation

__all__ = ["Process", "Store", "StreamWriter", "Toolset", "connect"]

T = TypeVar("T")


async def connect(url: str | None = None, prefix: str | None = None, *, looking: bool = False) -> Store:
    """Connect to the Redis at `url`, else at `$FDSTORE_URL`, else to the embedded server, which is
    started if it is not up. The URL is of one Redis (`redis://`, `rediss://`, `unix://`), of Sentinels
    (`sentinel://HOST,HOST/MASTER`) or of a Redis Cluster (`redis+cluster://HOST,HOST`). All keys begin with
    `prefix` (default: `$FDSTORE_PREFIX`, else "fdstore").

    With `looking` a Redis that is not safe to keep content in is not refused, and nothing is written: what
    would write raises `UnsafeStore`, on a safe one too.

    Raises `StoreUnavailable` when nothing answers there, `UnsafeStore` when it is older than 6.2 or
    evicts keys, `InvalidArgument` for a URL or prefix that cannot be.

    >>> async with await fdstore.aio.connect() as store:
    ...     proc = await store.process("triage")
    ...     d = await proc.create("hello")
    >>> d.fd
    'fd:1'
    """
    # starting a server takes its time
    meant, named = await asyncio.to_thread(chosen, url, prefix)
    store = Store(make_runner(meant), named, meant, looking=looking)
    try:
        await store.reach()
        await store.run(check_server(store.where, safe=not looking))
    except BaseException:
        await store.close()
        raise
    return store


class Store:
    """A connected Redis, in one event loop; made by `connect`. As an async context manager it closes itself.

    >>> proc = await store.process("triage")
    >>> [tree.id for tree in await store.trees()]
    ['triage']
    """

    def __init__(self, runner: Runner, prefix: str, url: str, *, looking: bool = False) -> None:
        self._runner = runner
        self._looking = looking
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
        """Connect now, trying once: a wrong URL shows at once, not after the time that lost
        connections are given. Raises `StoreUnavailable`.

        >>> await store.reach()
        """
        await self._runner.reach()

    async def close(self) -> None:
        """Close the connections. The store can be used again.

        >>> await store.close()
        """
        await self._runner.close()

    async def run(self, operation: Operation[T]) -> T:
        """Run one operation of `fdstore.store` and return its result. Raises what the operation raises.

        >>> from fdstore.store.clock import redis_now
        >>> await store.run(redis_now()) > 1.7e9
        True
        """
        if self._looking:
            operation = look_only(operation, self.where)
        return await self._runner.run(operation)

    async def process(self, name: str | None = None, *, limits: TreeLimits | None = None) -> Process:
        """Open the root process `name`, or make it with its tree; a child ("triage.1") must exist.
        Without a name, make a new one. `limits` hold for a tree that is made.

        Raises `InvalidArgument` (the name, a limit), `NotFound` (a child that is not there).

        >>> proc = await store.process("triage")
        >>> proc.id
        'triage'
        """
        space = await self.run(processes.open_process(self.prefix, name, limits or TreeLimits()))
        return Process(self, space)

    async def processes(self) -> list[ProcessRecord]:
        """Return all processes of all trees, by tree and time of birth, ended ones too. Damaged ones are left
        out, with a warning in the log; `survey` names them.

        >>> child = await proc.child()
        >>> [(member.id, member.state) for member in await store.processes()]
        [('triage', 'open'), ('triage.1', 'open')]
        """
        return [member for tree in await self.trees() for member in tree.members]

    async def trees(self) -> list[TreeRecord]:
        """Return all trees, by name. Damaged ones are left out as by `processes`.

        >>> other = await store.process("other")
        >>> [tree.id for tree in await store.trees()]
        ['other', 'triage']
        """
        return inspection.warned(await self.survey()).trees

    async def survey(self) -> Survey:
        """Return all trees, and beside them what cannot be read: damaged trees and processes, and trees of a
        newer format.

        >>> found = await store.survey()
        >>> len(found.trees), found.unreadable
        (1, [])
        """
        return await self.run(inspection.survey(self.prefix))

    async def tree(self, name: str) -> TreeRecord:
        """Return one tree: what it uses of its limits, and its processes. Raises `NotFound`, `NewerFormat`,
        `DamagedRecord`.

        >>> d = await proc.create("one")
        >>> tree = await store.tree("triage")
        >>> tree.fds, tree.bytes, tree.limits.tree_fds
        (1, 3, 10000)
        """
        return await self.run(inspection.tree_record(self.prefix, name))

    async def drop_tree(
        self, name: str, kill: bool = False, *, progress: Callable[[int], None] | None = None
    ) -> DroppedTree:
        """Remove a tree with all its processes, descriptors and journals, for good. Its memory is free again
        soon after, also in a Redis that is full; a removal that broke off is finished by the next one.
        `progress` is called with the number of contents removed so far.

        Raises `TreeInUse` while an agent or a pipeline of it runs or waits, unless it is to `kill` them;
        `NotFound`, `NewerFormat`.

        >>> d = await proc.create("one")
        >>> (await store.drop_tree("triage")).contents
        1
        """
        operation = dropping.drop_tree(self.prefix, name, kill=kill, progress=progress)
        return await self.run(operation)


class Toolset:
    r"""The tools of one process, for an awaiting loop of your own.

    enabled      names of built-in tools (default: read_fd and list_fds): read_fd search_fd list_fds
                 write_fd fd_to_file close_fd spawn pipe wait kill; a loop of your own has no fork
    config       sizes and switches (`FDConfig`)
    python       functions of yours, offered as tools: typed parameters, a docstring. They may be coroutine
                 functions; all run in threads
    programs     {"name": "file.toml"} that `spawn` may start on the workers
    commands     programs that `pipe` may run on the workers, by their bare names
    export_root  the directory that `fd_to_file` writes below, made if it is not there; needed for it
    preload_root the directory that `spawn` may take files from, if any
    wait_for_workers  without it `spawn` and `pipe` raise `NoWorker` when no worker lives that could run
                 what they start; with it that waits for one, and a warning is logged after 3 s

    Raises `InvalidArgument` for a tool or function that cannot be, `InvalidProgram`, and `MissingExtra` for
    a tool that needs workers where the packages that reach them are not installed.

    >>> tools = fdstore.aio.Toolset(proc, enabled=["read_fd"])
    >>> d = await proc.create("one\ntwo\n")
    >>> result = await tools.call("read_fd", {"fd": "fd:1#L2"})
    >>> print(result.content)
    <fd_content fd="fd:1" pages="1" ... mode="line" start="2" count="1">
    two
    <BLANKLINE>
    </fd_content>
    """

    def __init__(
        self,
        process: Process,
        *,
        enabled: Sequence[ToolName] = toolset.DEFAULT_TOOLS,
        config: FDConfig | None = None,
        python: Sequence[Callable[..., Any]] = (),
        programs: Mapping[str, str | os.PathLike[str]] | None = None,
        commands: Sequence[str] = (),
        export_root: str | os.PathLike[str] | None = None,
        preload_root: str | os.PathLike[str] | None = None,
        wait_for_workers: bool = True,
    ) -> None:
        self._store = process.store
        context = toolset.context_for(
            process.space,
            process.store.prefix,
            enabled=enabled,
            config=config,
            linked=toolset.linked_programs(programs or {}),
            export_root=export_root,
            preload_root=preload_root,
            wake=toolset.waker_for(enabled, process.store.url, process.store.prefix),
            commands=commands,
            wait_for_workers=wait_for_workers,
        )
        self._toolbox = Toolbox(context, python)

    @property
    def definitions(self) -> list[Any]:
        """The tools as the Messages API takes them: dicts with `name`, `description` and `input_schema`,
        typed `Any` so that they fit the SDK's own type of a tool.

        >>> proc = await store.process("triage")
        >>> tools = fdstore.aio.Toolset(proc)
        >>> [tool["name"] for tool in tools.definitions]
        ['read_fd', 'list_fds']
        """
        return self._toolbox.definitions

    @property
    def instructions(self) -> str:
        """What to put into the system prompt: just the tools and switches that are on.

        >>> proc = await store.process("triage")
        >>> tools = fdstore.aio.Toolset(proc, enabled=["read_fd"])
        >>> "read_fd" in tools.instructions, "search_fd" in tools.instructions
        (True, False)
        """
        return self._toolbox.instructions

    async def call(self, name: str, arguments: dict[str, Any], call_id: str | None = None) -> ToolResult:
        """Run a call of the model and return what it is to see. What the model got wrong is a result with
        `is_error`. The same `call_id` twice does the work once; with another tool or other arguments it is
        `invalid_argument`, so number the calls of a process throughout. A spawn waits for the child to end.

        Raises `StoreUnavailable` and the like only when no result can be had at all.

        >>> d = await proc.create("one")
        >>> await tools.call("read_fd", {"fd": "fd:2"})
        ToolResult(content='<fd_error type="not_found" fd="fd:2">...', is_error=True)
        """
        return await self._store.run(self._toolbox.call(name, arguments, call_id or None))

    async def wrap(self, output: Any, source: str = "tool_result", call_id: str | None = None) -> str:
        r"""Return the output of a tool of your own as the model is to see it: itself when short, else the
        `fd_result` of a descriptor made of it. What is no text (content blocks, JSON values) becomes
        one. For a tool that failed, begin with its exit code or error: that is what the model is
        shown first. What `call` returned is finished and needs no wrapping.

        Raises `InvalidArgument` for what cannot be text, and for a `call_id` under which another output
        was stored; `QuotaExceeded`.

        >>> await tools.wrap("short")
        'short'
        >>> shown = await tools.wrap("a long line\n" * 1000, source="grep")
        >>> shown.startswith('<fd_result fd="fd:1" pages="4" ')
        True
        """
        context = self._toolbox.context
        return await self._store.run(wrapped_once(context, flattened(output), source, call_id or None))

    async def wrap_input(self, given: str | Sequence[Any]) -> str | list[Any]:
        """Return user input as the model is to see it: a long text, or each long text block of a list, as
        the `fd_result` of a descriptor made of it. Raises `QuotaExceeded`.

        >>> await tools.wrap_input("Why did the build fail?")
        'Why did the build fail?'
        >>> shown = await tools.wrap_input(open("build.log").read())
        >>> [d.source for d in await proc.list()]
        ['user_input']
        """
        return await self._store.run(wrapped_input(self._toolbox.context, given))

    async def take_references(self, answer: str | Sequence[Any]) -> list[str]:
        """Store each `<ref id="NAME">...</ref>` passage of an answer (a text, or the blocks of a
        message) as `ref:NAME`, and return these ids. Raises `QuotaExceeded`.

        >>> await tools.take_references('It was <ref id="cause">a full disk</ref>.')
        ['ref:cause']
        >>> (await proc.read("ref:cause")).text
        'a full disk'
        """
        return await self._store.run(taken_references(self._toolbox.context, answer))
