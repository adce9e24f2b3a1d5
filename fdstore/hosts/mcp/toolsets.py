"""The toolsets of a server: one for each process and set of permissions that callers have.

A host starts its servers and soon after asks for their tools, and a server that answers late has no tools in
the first turn. So the tools are described without a store; the connection begins in the background, and a
call waits for it. A store that is away is an error of each call until it answers again: the first waits for
`HOST_PATIENCE_S`, the following ones fail at once. The list of resources is empty meanwhile.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakValueDictionary

import msgspec

from fdstore.errors import NotFound, StoreUnavailable
from fdstore.hosts.mcp.access import Access, tools_of
from fdstore.results.config import FDConfig
from fdstore.setup.settings import HOST_READ_CHARS
from fdstore.store.keys import check_process
from fdstore.store.processes.processes import open_child
from fdstore.store.recent import Recent
from fdstore.store.tokens import PERMISSIONS
from fdstore.toolset.build import described_context

if TYPE_CHECKING:
    from fdstore.client._async.process import Process
    from fdstore.client._async.store import Store
    from fdstore.results.context import Context
    from fdstore.tools.toolbox import Toolbox
    from fdstore.toolset._async import Toolset

DEFAULT_CONFIG = FDConfig(max_read_chars=HOST_READ_CHARS)

LIST_WITHIN_S = 0.1
"""The time that the list of resources waits for the first connection."""

MAX_TOOLSETS = 256
"""Toolsets that are kept; a server whose callers have tokens may be asked for any number of processes."""

PROGRAMS_AT_ONCE = 8
"""Programs of different processes that run at the same time; each may take much memory and a processor."""

Connect: TypeAlias = Callable[[], Awaitable["Store"]]


class ToolOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the tools, as those of `Toolset`."""

    config: FDConfig = DEFAULT_CONFIG
    export_root: str | os.PathLike[str] | None = None
    put_root: str | os.PathLike[str] | None = None
    commands: tuple[str, ...] = ()
    meter: str | None = None


class Toolsets:
    """The toolsets of a store that is connected when one is needed.

    connect  returns the connected store, which `close` closes
    default  the access of callers without a token
    """

    def __init__(self, connect: Connect, default: Access, options: ToolOptions | None = None) -> None:
        self.default = default
        self.options = options or ToolOptions()
        self.stopping = asyncio.Event()
        """Set when the server is about to stop, so that requests which wait for something end."""
        self._connect = connect
        self._store: Store | None = None
        self._opening = asyncio.Lock()
        self._toolsets: Recent[Access, Toolset] = Recent(MAX_TOOLSETS)
        self._programs = asyncio.Semaphore(PROGRAMS_AT_ONCE)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def store(self) -> Store:
        """Return the store, connected. Raises as `connect`; the next call tries again."""
        async with self._opening:
            if self._store is None:
                self._store = await self._connect()
            return self._store

    async def toolset(self, access: Access | None = None) -> Toolset:
        """Return the toolset for this access, or the default one. A root process that does not exist is
        created. Raises `NotFound` for a child that does not exist, and as `connect`."""
        access = access or self.default
        known = self._toolsets.get(access)
        if known is None:
            store = await self.store()
            tools = self._build(await store.process(access.process), access)
            known = self._toolsets.first(access, tools)
        return known

    async def toolset_soon(self, access: Access) -> Toolset | None:
        """Return the toolset for this access; None if the store is away, or not connected soon. Raises as
        `toolset`."""
        import fdstore.toolset._async  # noqa: F401  the time limit is for the connection, not for imports

        try:
            async with asyncio.timeout(LIST_WITHIN_S):
                return await self.toolset(access)
        except (TimeoutError, StoreUnavailable):
            return None

    def _build(self, process: Process, access: Access) -> Toolset:
        from fdstore.toolset._async import Toolset

        options = self.options
        return Toolset(
            process,
            enabled=tools_of(access.permissions),
            config=options.config,
            commands=options.commands if "pipe" in access.permissions else (),
            export_root=options.export_root if "export" in access.permissions else None,
            preload_root=options.put_root,
            code_may_create="write" in access.permissions,
            meter=options.meter,
            outside=tuple(options.config.tool),  # tools of the host, whose names only it knows
        )

    @asynccontextmanager
    async def turn_to_run(self, access: Access) -> AsyncIterator[None]:
        """Wait until code may run in the process. A process has one session, so a second program would
        replace the first; and so many programs run at once on this server, `PROGRAMS_AT_ONCE`."""
        turn = self._turns.setdefault(access.process, asyncio.Lock())
        async with turn, self._programs:
            yield

    async def process(self, access: Access, name: str) -> Process:
        """Return a process that this access may read, by its id. Raises `NotFound` for another one, and as
        `connect`."""
        if not access.may_read(check_process(name)):
            raise NotFound(f"process {name}", (access.process,) if "read" in access.permissions else ())
        if name == access.process:
            return (await self.toolset(access)).process
        from fdstore.client._async.process import Process

        store = await self.store()
        return Process(store, await store.run(open_child(store.prefix, name)))

    async def restore(self, access: Access) -> bool:
        """Create the root process again if its tree was removed, and return whether it was. Its toolset keeps
        what it knows, so that no id of the removed tree comes to mean another text."""
        store = await self.store()
        try:
            await store.run(open_child(store.prefix, access.process))
        except NotFound:
            if "." in access.process:
                return False
            await store.process(access.process)
            return True
        return False

    def describe(self, access: Access | None = None) -> Toolbox:
        """Return the tools without a connection: for their definitions, not to be called."""
        from fdstore.tools.toolbox import Toolbox

        return Toolbox(self.context(access))

    def context(self, access: Access | None = None) -> Context:
        """Return what the tools of this access have around them, without a connection."""
        access, options = access or self.default, self.options
        return described_context(
            enabled=tools_of(access.permissions),
            config=options.config,
            export_root=options.export_root if "export" in access.permissions else None,
            preload_root=options.put_root,
            commands=options.commands if "pipe" in access.permissions else (),
            code_may_create="write" in access.permissions,
        )

    async def close(self) -> None:
        """Close the connection, if there is one."""
        store, self._store = self._store, None
        self._toolsets.clear()
        if store is not None:
            await store.close()


class OpenToolset(Toolsets):
    """A toolset that its owner opened, and closes. All callers use it."""

    def __init__(self, tools: Toolset) -> None:
        async def connected() -> Store:
            return tools.process.store

        permissions = frozenset(PERMISSIONS) - {"answer"}
        super().__init__(connected, Access(process=tools.process.id, permissions=permissions))
        self._tools = tools

    async def toolset(self, access: Access | None = None) -> Toolset:
        return self._tools

    def describe(self, access: Access | None = None) -> Toolbox:
        return self._tools._toolbox

    def context(self, access: Access | None = None) -> Context:
        return self._tools._toolbox.context

    async def close(self) -> None:
        """Do nothing: the store is its owner's."""
