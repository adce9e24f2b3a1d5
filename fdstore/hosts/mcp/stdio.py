"""Serve MCP on standard input and output. Nothing else is written to standard output.

A host that starts a server waits for the answer to `initialize`. What calls need is imported and connected
with the first other message.

The transport of the SDK reads and writes the lines. It does not know the byte order mark that some hosts
write. A request that it cannot read, as one with half a surrogate pair, gets an error here: its host would
wait for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import anyio
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from fdstore.hosts.gateway.json_parts import parts_of, value_of


async def serve_stdio(server: Server[Any], answered: asyncio.Event) -> None:
    """Serve one client until standard input ends. Set `answered` when it has sent more than `initialize`."""
    async with stdio_server() as (incoming, outgoing):
        sender, receiver = create_context_streams[SessionMessage | Exception](0)
        async with anyio.create_task_group() as tasks:

            async def relay() -> None:
                async with sender:
                    async for message in incoming:
                        found = without_mark(message)
                        if not _is_initialize(found):
                            answered.set()
                        answer = answer_to_unreadable(found)
                        if answer is None:
                            await sender.send(found)
                        else:
                            await outgoing.send(SessionMessage(answer))

            tasks.start_soon(relay)
            await server.run(receiver, outgoing, server.create_initialization_options())
            tasks.cancel_scope.cancel()


def _is_initialize(message: SessionMessage | Exception) -> bool:
    return isinstance(message, SessionMessage) and getattr(message.message, "method", "") == "initialize"


def without_mark(message: SessionMessage | Exception) -> SessionMessage | Exception:
    """Return the message of a line that has a byte order mark before it; any other as it is."""
    if not isinstance(message, ValidationError) or (line := _line_in(message)) is None:
        return message
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError as error:
        return error


def answer_to_unreadable(message: SessionMessage | Exception) -> JSONRPCError | None:
    """Return the error for a line that is a request in JSON but not one that the SDK reads, else None."""
    if not isinstance(message, ValidationError):
        return None
    request = _request_in(message)
    number = request.get("id")
    if not isinstance(request.get("method"), str) or isinstance(number, bool):
        return None
    if not isinstance(number, (int, str)):
        return None
    [problem, *_] = message.errors(include_url=False)
    words = f"the request cannot be read: {problem['msg']}"
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=PARSE_ERROR, message=words))


def _line_in(error: ValidationError) -> str | None:
    """Return the line that pydantic could not read as JSON, without a byte order mark."""
    [problem, *_] = error.errors(include_url=False)
    if problem["type"] != "json_invalid":
        return None
    return str(problem["input"]).removeprefix("\ufeff")


def _request_in(error: ValidationError) -> Mapping[str, Any]:
    """Return what is known of the request that pydantic could not read."""
    if (line := _line_in(error)) is not None:
        fields = parts_of(line.encode()) or {}
        try:
            return {name: value_of(fields[name]) for name in ("id", "method") if name in fields}
        except ValueError:
            return {}
    given = (problem["input"] for problem in error.errors(include_url=False))
    return next((each for each in given if isinstance(each, dict) and "method" in each), {})
