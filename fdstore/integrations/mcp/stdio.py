"""Serve MCP on standard input and output. Nothing else is written to standard output.

The transport of the SDK reads and writes the lines. A request that it cannot read, as one with half a
surrogate pair, gets an error here: its host would wait for ever.
"""

from __future__ import annotations

import json
from typing import Any

import anyio
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until standard input ends."""
    async with stdio_server() as (incoming, outgoing):
        sender, receiver = create_context_streams[SessionMessage | Exception](0)
        async with anyio.create_task_group() as tasks:

            async def relay() -> None:
                async with sender:
                    async for message in incoming:
                        answer = answer_to_unreadable(message)
                        if answer is None:
                            await sender.send(message)
                        else:
                            await outgoing.send(SessionMessage(answer))

            tasks.start_soon(relay)
            await server.run(receiver, outgoing, server.create_initialization_options())
            tasks.cancel_scope.cancel()


def answer_to_unreadable(message: SessionMessage | Exception) -> JSONRPCError | None:
    """Return the error for a line that is a request in JSON but not one that the SDK reads, else None."""
    if not isinstance(message, ValidationError):
        return None
    [problem, *_] = message.errors(include_url=False)
    try:
        request = json.loads(problem["input"]) if problem["type"] == "json_invalid" else problem["input"]
    except (ValueError, RecursionError):
        return None
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        return None
    number = request.get("id")
    if isinstance(number, bool) or not isinstance(number, (int, str)):
        return None
    words = f"the request cannot be read: {problem['msg']}"
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=PARSE_ERROR, message=words))
