"""Serve MCP on standard input and output. Nothing else is written to standard output.

A host that starts a server waits for the answer to `initialize`. What calls need is imported and connected
with the first other message.

The transport of the SDK reads and writes the lines. It does not know the byte order mark that some hosts
write, and the batches of 2025-03-26, whose requests are answered one by one. A request that it cannot read,
as one with half a surrogate pair, gets an error here: its host would wait for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from typing import Any, TypeAlias

import anyio
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from fdstore.hosts.gateway.json_parts import items_of, parts_of, value_of

_Incoming: TypeAlias = SessionMessage | Exception


async def serve_stdio(server: Server[Any], answered: asyncio.Event) -> None:
    """Serve one client until standard input ends. Set `answered` when it has sent more than `initialize`."""
    async with stdio_server() as (incoming, outgoing):
        sender, receiver = create_context_streams[SessionMessage | Exception](0)
        async with anyio.create_task_group() as tasks:

            async def relay() -> None:
                async with sender:
                    async for found in _each(incoming):
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


async def _each(incoming: AsyncIterable[_Incoming]) -> AsyncIterator[_Incoming]:
    async for message in incoming:
        for each in messages_in(message):
            yield each


def messages_in(message: _Incoming) -> list[_Incoming]:
    """Return the messages of a line: those of a batch, and that after a byte order mark; any other as it
    is."""
    if not isinstance(message, ValidationError):
        return [message]
    if (line := _line_in(message)) is not None:
        items = items_of(line.encode())
        texts = [line] if items is None else [bytes(each).decode() for each in items]
        return [_read(jsonrpc_message_adapter.validate_json, text) for text in texts]
    [problem, *_] = message.errors(include_url=False)
    if problem["type"] != "model_type" or not isinstance(batch := problem["input"], list):
        return [message]
    return [_read(jsonrpc_message_adapter.validate_python, each) for each in batch]


def _read(validate: Callable[..., JSONRPCMessage], given: Any) -> _Incoming:
    try:
        return SessionMessage(validate(given, by_name=False))
    except ValidationError as error:
        return error


def answer_to_unreadable(message: _Incoming) -> JSONRPCError | None:
    """Return the error for a message that is a request in JSON but not one that the SDK reads, else None. It
    has no id if that of the request is none of the protocol."""
    if isinstance(message, SessionMessage):
        found = message.message  # the SDK takes a request with such an id for a notification
        if isinstance(found, JSONRPCNotification) and not found.method.startswith("notifications/"):
            return _error(None, INVALID_REQUEST, "an id is a string or an integer")
        return None
    if not isinstance(message, ValidationError):
        return None
    request = _request_in(message)
    if not isinstance(request.get("method"), str) or "id" not in request:
        return None
    number = request["id"] if type(request["id"]) in (int, str) else None
    [problem, *_] = message.errors(include_url=False)
    return _error(number, PARSE_ERROR, problem["msg"])


def _error(number: int | str | None, code: int, problem: str) -> JSONRPCError:
    error = ErrorData(code=code, message=f"the request cannot be read: {problem}")
    return JSONRPCError(jsonrpc="2.0", id=number, error=error)


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
