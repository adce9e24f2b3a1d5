"""An MCP server over HTTP in this process, and clients that call it over loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from fdstore.hosts.mcp.bearer import StoredTokens
from fdstore.hosts.mcp.http import make_app, url_of
from fdstore.hosts.mcp.server import build_server
from fdstore.hosts.mcp.toolsets import Toolsets
from fdstore.http.address import listen
from fdstore.http.server import HttpServer
from tests.on_redis.hosts.mcp.sessions import toolsets_at


@asynccontextmanager
async def served(
    redis_url: str, *, with_tokens: bool = False, names: tuple[str, ...] = (), **access: Any
) -> AsyncIterator[str]:
    """Yield the URL of a server for the process `triage`, or with tokens for what they name."""
    async with serving(toolsets_at(redis_url, **access), with_tokens=with_tokens, names=names) as url:
        yield url


@asynccontextmanager
async def serving(
    toolsets: Toolsets, *, with_tokens: bool = False, names: tuple[str, ...] = ()
) -> AsyncIterator[str]:
    tokens = StoredTokens(toolsets) if with_tokens else None
    server = build_server(toolsets, find_access=None if tokens is None else tokens.access)
    with listen("127.0.0.1", 0) as listening:
        http = HttpServer(make_app(server, "127.0.0.1", names, tokens), toolsets.stopping)
        task = asyncio.create_task(http.serve(sockets=[listening]))
        try:
            yield url_of(listening)
        finally:
            http.should_exit = True
            await task


@asynccontextmanager
async def calling(url: str, secret: str = "", *, era: str = "2026-07-28") -> AsyncIterator[Client]:
    """Yield a client, with a token if one is given."""
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    async with (
        httpx2.AsyncClient(headers=headers, verify=False) as http,
        Client(streamable_http_client(url, http_client=http), mode=era) as client,
    ):
        yield client


async def status_of(url: str, **headers: str | bytes) -> int:
    """Return the status of a request that lists the tools."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accepted: dict[str, str | bytes] = {"Accept": "application/json, text/event-stream", **headers}
    async with httpx2.AsyncClient(verify=False) as http:
        return (await http.post(url, json=body, headers=accepted)).status_code
