"""Serve MCP on standard input and output. Nothing else is written to standard output."""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until standard input ends."""
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())
