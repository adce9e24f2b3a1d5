"""The same surface as `fdstore`, awaited: every call that talks to Redis is a coroutine.

    import fdstore.aio

    store = await fdstore.aio.connect()
    proc = await store.process("triage")
    d = await proc.create(text)
    page = await proc.read(d.fd, start=2)

A store belongs to the event loop it was connected in. Files are read and written in threads.
Arguments, results and errors are those of `fdstore.client`, whose methods have the documentation: put
`await` before a call of their examples, and `async` before the `for` of `follow`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, BinaryIO, Literal, TypeVar

from fdstore import client, toolset
from fdstore.aio_writer import StreamWriter
from fdstore.client import FdLike
from fdstore.files import Target
from fdstore.inputs import opened, source_name
from fdstore.records import (
    Descriptor,
    Export,
    Mode,
    ProcessRecord,
    SearchResult,
    Slice,
    TreeLimits,
    TreeRecord,
)
from fdstore.store import contents, following, inspection, processes, searching, streams
from fdstore.store.aio_connection import AsyncRunner
from fdstore.store.check import check_server
from fdstore.store.cluster import make_async_runner
from fdstore.store.operation import Operation
from fdstore.store.server import chosen
from fdstore.store.views import Namespace
from fdstore.text.paging import DecodeErrors
from fdstore.text.selection import FIRST_PAGE, fd_id, fd_ids, number, wanted
from fdstore.tools.config import FDConfig
from fdstore.tools.storing import flattened, taken_references, wrapped, wrapped_input
from fdstore.tools.tool import ToolResult
from fdstore.tools.toolbox import Toolbox

T = TypeVar("T")
AnyClass = TypeVar("AnyClass", bound=type)


def documented_by(original: type) -> Callable[[AnyClass], AnyClass]:
    """Gives methods the documentation of their namesakes in the blocking class."""

    def document(twin: AnyClass) -> AnyClass:
        for name, member in vars(twin).items():
            if callable(member) and not member.__doc__ and hasattr(original, name):
                member.__doc__ = getattr(original, name).__doc__
        return twin

    return document


async def connect(url: str | None = None, prefix: str | None = None) -> Store:
    """A store on the Redis at `url`, else at `$FDSTORE_URL`, else on the embedded server. Raises as
    `fdstore.connect`."""
    # starting a server takes its time
    meant, named = await asyncio.to_thread(chosen, url, prefix)
    store = Store(make_async_runner(meant), named, meant)
    try:
        await store.reach()
        await store.run(check_server(store.where))
    except BaseException:
        await store.close()
        raise
    return store


@documented_by(client.Store)
class Store:
    """A connected Redis, in one event loop."""

    def __init__(self, runner: AsyncRunner, prefix: str, url: str) -> None:
        self._runner = runner
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
        """The URL without its password."""
        return self._runner.where

    async def reach(self) -> None:
        await self._runner.reach()

    async def close(self) -> None:
        await self._runner.close()

    async def run(self, operation: Operation[T]) -> T:
        return await self._runner.run(operation)

    async def process(self, name: str | None = None, *, limits: TreeLimits | None = None) -> Process:
        space = await self.run(processes.open_process(self.prefix, name, limits or TreeLimits()))
        return Process(self, space)

    async def processes(self) -> list[ProcessRecord]:
        return [member for tree in await self.trees() for member in tree.members]

    async def trees(self) -> list[TreeRecord]:
        return inspection.warned(await self.survey()).trees

    async def survey(self) -> inspection.Survey:
        return await self.run(inspection.survey(self.prefix))

    async def tree(self, name: str) -> TreeRecord:
        return await self.run(inspection.tree_record(self.prefix, name))


@documented_by(client.Process)
class Process:
    """A process and its descriptors, as one client sees them; see `fdstore.Process`."""

    def __init__(self, store: Store, space: Namespace) -> None:
        self.store = store
        self.space = space

    def __repr__(self) -> str:
        return f"<fdstore.aio.Process {self.id}>"

    @property
    def id(self) -> str:
        """Its name: `triage`, or `triage.1` for a child."""
        return self.space.id

    async def _run(self, operation: Operation[T]) -> T:
        if self.space.must_note():
            await self.store.run(processes.touch(self.space))
        return await self.store.run(operation)

    async def create(self, text: str, source: str = "text", page_size: int | None = None) -> Descriptor:
        return await self._run(contents.create(self.space, text, source, page_size))

    async def ingest(
        self,
        file: str | os.PathLike[str] | BinaryIO,
        source: str | None = None,
        page_size: int | None = None,
        errors: DecodeErrors = "strict",
        progress: Callable[[int], None] | None = None,
    ) -> Descriptor:
        with opened(file) as binary:
            name = source or source_name(file)
            return await self._run(contents.ingest(self.space, binary, name, page_size, errors, progress))

    async def stat(self, fd: FdLike) -> Descriptor:
        return await self._run(contents.stat(self.space, fd_id(fd)))

    async def list(self) -> list[Descriptor]:
        return await self._run(contents.listed(self.space))

    async def read(
        self,
        fd: FdLike,
        *,
        mode: Mode | None = None,
        start: int | None = None,
        count: int | None = None,
        read_all: bool = False,
        max_chars: int | None = None,
        wait: float = 0.0,
    ) -> Slice:
        asked = wanted(fd, mode, start, count, whole=read_all, default=FIRST_PAGE)
        return await self._run(following.read_whole(self.space, asked.fd, asked.part, max_chars, wait))

    async def open_stream(
        self,
        source: str = "stream",
        page_size: int | None = None,
        *,
        lease_s: float = streams.LEASE_S,
    ) -> StreamWriter:
        pen = await self._run(
            streams.open_stream(self.space, source, page_size, lease_s=streams.check_lease(lease_s))
        )
        return StreamWriter(self.store.run, pen)

    def follow(self, fd: FdLike, start: int = 1) -> AsyncIterator[str]:
        return self._pieces(following.Follower(self.space, fd_id(fd), number("start", start)))

    async def _pieces(self, follower: following.Follower) -> AsyncIterator[str]:
        while not follower.ended:
            if text := await self._run(follower.more()):
                yield text

    async def extract(
        self,
        fd: FdLike,
        *,
        mode: Mode | None = None,
        start: int | None = None,
        count: int | None = None,
        page_size: int | None = None,
    ) -> Descriptor:
        asked = wanted(fd, mode, start, count)
        return await self._run(contents.extract(self.space, asked.fd, asked.part, page_size=page_size))

    async def search(
        self,
        fd: FdLike,
        pattern: str,
        *,
        context: int = 0,
        max_matches: int = searching.MAX_SHOWN,
        ignore_case: bool = False,
    ) -> SearchResult:
        asked = wanted(fd)
        found = searching.search(
            self.space,
            asked.fd,
            asked.part,
            pattern,
            context=context,
            max_matches=max_matches,
            ignore_case=ignore_case,
        )
        return await self._run(found)

    async def export(
        self,
        fd: FdLike,
        path: str | os.PathLike[str],
        *,
        mode: Literal["write", "append"] = "write",
        create: bool = True,
        exist_ok: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> Export:
        asked = wanted(fd)
        target = Target(path, mode=mode, create=create, exist_ok=exist_ok)
        return await self._run(contents.export(self.space, asked.fd, asked.part, target, mode, progress))

    async def close(self, fd: FdLike) -> None:
        await self._run(contents.close(self.space, fd_id(fd)))

    async def child(self, share: Sequence[FdLike] = ()) -> Process:
        return Process(self.store, await self._run(processes.child(self.space, fd_ids(share))))

    async def fork(self) -> Process:
        return Process(self.store, await self._run(processes.child(self.space, None)))

    async def end(self) -> None:
        await self._run(processes.end(self.space))


@documented_by(toolset.Toolset)
class Toolset:
    """The tools of one process, for an awaiting loop of your own; see `fdstore.Toolset`. Functions
    in `python` may be coroutine functions; all run in threads."""

    def __init__(
        self,
        process: Process,
        *,
        enabled: Sequence[str] = toolset.DEFAULT_TOOLS,
        config: FDConfig | None = None,
        python: Sequence[Callable[..., Any]] = (),
        programs: Mapping[str, str | os.PathLike[str]] | None = None,
        commands: Sequence[str] = (),
        export_root: str | os.PathLike[str] | None = None,
        preload_root: str | os.PathLike[str] | None = None,
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
        )
        self._toolbox = Toolbox(context, python)

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """The tools as the Messages API takes them."""
        return self._toolbox.definitions

    @property
    def instructions(self) -> str:
        """What to put into the system prompt: just the tools and switches that are on."""
        return self._toolbox.instructions

    async def call(self, name: str, arguments: dict[str, Any], call_id: str | None = None) -> ToolResult:
        return await self._store.run(self._toolbox.call(name, arguments, call_id or None))

    async def wrap(self, output: Any, source: str = "tool_result", call_id: str | None = None) -> str:
        context = self._toolbox.context
        return await self._store.run(wrapped(context, flattened(output), source, call_id or None))

    async def wrap_input(self, given: str | Sequence[Any]) -> str | list[Any]:
        return await self._store.run(wrapped_input(self._toolbox.context, given))

    async def take_references(self, answer: str | Sequence[Any]) -> list[str]:
        return await self._store.run(taken_references(self._toolbox.context, answer))
