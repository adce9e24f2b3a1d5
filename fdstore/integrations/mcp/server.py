"""`build_server`: a toolset as a `Server` of the SDK, which serves both protocol eras on any transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server

from fdstore import __version__
from fdstore.errors import FDStoreError
from fdstore.integrations.mcp.access import Access
from fdstore.integrations.mcp.calls import call_tool
from fdstore.integrations.mcp.guide import server_instructions
from fdstore.integrations.mcp.host_tools import HostTool, by_name
from fdstore.integrations.mcp.progress import Report
from fdstore.integrations.mcp.tool_list import list_tools
from fdstore.integrations.mcp.toolsets import OpenToolset, Toolsets
from fdstore.toolset._async import Toolset

RequestContext: TypeAlias = ServerRequestContext[Any, Any]

FindAccess: TypeAlias = Callable[[RequestContext], Access]
"""Returns what the caller of a request may do."""

LISTS_FRESH_MS = 300_000
"""How long clients may keep lists that change only with the server's options."""


def build_server(
    tools: Toolset | Toolsets,
    *,
    host_tools: Iterable[HostTool] = (),
    find_access: FindAccess | None = None,
) -> Server[Any]:
    """Return a server for a toolset, or for the toolsets of several processes.

    host_tools   tools of another module, listed after ours
    find_access  returns what the caller of a request may do; by default everything that the toolset offers

    Raises `InvalidArgument` for a host tool whose name is taken.
    """
    toolsets = OpenToolset(tools) if isinstance(tools, Toolset) else tools
    hosts = by_name(host_tools)

    def access_of(context: RequestContext) -> Access:
        return toolsets.default if find_access is None else find_access(context)

    async def on_list_tools(
        context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        listed = list_tools(toolsets, access_of(context))
        return types.ListToolsResult(tools=listed + [tool.described() for tool in hosts.values()])

    async def on_call_tool(
        context: RequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        access, report = access_of(context), _report_of(context)
        return await call_tool(toolsets, hosts, access, params.name, params.arguments or {}, report)

    @asynccontextmanager
    async def lifespan(_: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        connecting = asyncio.create_task(_connect_early(toolsets), name="fdstore connect")
        try:
            yield {}
        finally:
            connecting.cancel()
            await asyncio.wait([connecting])
            await toolsets.close()

    fresh = CacheHint(ttl_ms=LISTS_FRESH_MS)
    return Server(
        "fdstore",
        version=__version__,
        title="fdstore",
        instructions=server_instructions(toolsets.describe()),
        cache_hints={"tools/list": fresh, "server/discover": fresh},
        lifespan=lifespan,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )


def _report_of(context: RequestContext) -> Report | None:
    """Return the function that reports progress; None if the client asked for none."""
    if not context.meta or context.meta.get("progress_token") is None:
        return None
    return context.session.report_progress


async def _connect_early(toolsets: Toolsets) -> None:
    """Connect before the first call. An error shows when a tool is called."""
    with suppress(FDStoreError):
        await toolsets.toolset()
