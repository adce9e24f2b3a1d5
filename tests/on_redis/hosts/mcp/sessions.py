"""A client of the SDK that speaks to our server in this process, in both protocol eras."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mcp import Client
from mcp_types import CallToolResult, TextContent

from fdstore.client._async.store import Connector
from fdstore.hosts.mcp.access import Access
from fdstore.hosts.mcp.server import build_server
from fdstore.hosts.mcp.toolsets import ToolOptions, Toolsets
from fdstore.setup.settings import HOST_PATIENCE_S

T = TypeVar("T")

ERAS = ("legacy", "2026-07-28")

Talk = Callable[[Client], Awaitable[T]]


def toolsets_at(
    url: str, *, options: ToolOptions | None = None, patience: float = HOST_PATIENCE_S, **access: Any
) -> Toolsets:
    """Return toolsets of the process `triage` of a store."""
    connector = Connector(url, None, patience=patience)
    return Toolsets(connector.connect, Access(process="triage", **access), options)


def talk(url: str, work: Talk[T], *, era: str = "legacy", options: Any = None, **access: Any) -> T:
    """Return what `work` returns, given a client of a server for the process `triage`."""

    async def main() -> T:
        toolsets = toolsets_at(url, options=options, **access)
        async with Client(build_server(toolsets), mode=era) as client:
            return await work(client)

    return asyncio.run(main())


def call_all(url: str, *calls: tuple[str, dict[str, Any]], **options: Any) -> list[CallToolResult]:
    """Return the results of calls of tools, given their names and arguments, of one client; see `talk`."""

    async def work(client: Client) -> list[CallToolResult]:
        return [await client.call_tool(name, arguments) for name, arguments in calls]

    return talk(url, work, **options)


def text_of(result: CallToolResult) -> str:
    """Return the text of a result, which has nothing but texts."""
    assert all(isinstance(block, TextContent) for block in result.content)
    assert result.structured_content is None
    return "".join(block.text for block in result.content if isinstance(block, TextContent))
