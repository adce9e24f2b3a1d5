"""The hook of the Claude plugin: a tool of its own MCP server, which Claude Code calls after other tools,
and before those of the plugin.

No program is started for a call, and the server that stores the output is the one that `read_fd` reads
from. The arguments are the fields of the hook's event; those that are no texts arrive as JSON. The result
is the hook's answer as JSON, `{}` to leave the output as it is. Errors are logged, and leave it as it is.

A model could call the tool as well, with an event that it made up. That stores a text, as `put_fd` does,
and reads no file that is not a kept output of a session (`persisted_file`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from fdstore.errors import FDStoreError
from fdstore.hosts.hooks import claude
from fdstore.hosts.hooks.output import Event, ToolOutput, decoded, text_field
from fdstore.hosts.hooks.own_tools import HOOK_TOOL
from fdstore.hosts.hooks.persisted_file import whole_of
from fdstore.hosts.mcp.tool_list import HostTool
from fdstore.results.tool_outcome import Offloaded
from fdstore.toolset._async import Toolset

log = logging.getLogger("fdstore.hooks")

DEADLINE_S = 20.0
"""The longest time that Claude Code waits for a store that does not answer."""

FIELDS = ("hook_event_name", "tool_name", "tool_input", "tool_response", "tool_use_id", "session_id", "cwd")

DESCRIPTION = "Called by Claude Code itself around other tools. Do not call it."


def guide(limit: int) -> str:
    """Return the part of the server's instructions that describes the hook."""
    return (
        f"Outputs of other tools over {limit} characters become an <fd_result> by themselves. What a failed "
        "command printed is cut by Claude Code before that. If all of it matters, as of a test run, let the "
        'command succeed: make test; echo "exit code $?"'
    )


def hook_tool(open_tools: Callable[[], Awaitable[Toolset]], limit: int, claude_config: Path) -> HostTool:
    """Return the tool. `limit` is the longest output, in characters, that stays as it is."""

    async def run(arguments: dict[str, Any]) -> str:
        event = event_of(arguments)
        if (permission := claude.permission_of(event)) is not None:
            return msgspec.json.encode(permission).decode("utf-8")
        output = claude.output_of(event, limit)
        if output is None:
            return "{}"
        try:
            async with asyncio.timeout(DEADLINE_S):
                offloaded = await _offload(await open_tools(), output, claude_config)
        except FDStoreError as error:
            log.warning("the output of %s stays as it is: %s: %s", output.source, error.type, error)
            return "{}"
        except TimeoutError:
            log.warning("the output of %s stays as it is: the store takes too long", output.source)
            return "{}"
        if offloaded.descriptor is None:
            return "{}"
        return msgspec.json.encode(output.answer(offloaded.content)).decode("utf-8")

    properties = {name: {"type": "string"} for name in FIELDS}
    schema = {"type": "object", "properties": properties, "required": ["tool_name"]}
    return HostTool(name=HOOK_TOOL, description=DESCRIPTION, run=run, input_schema=schema)


def event_of(arguments: dict[str, Any]) -> Event:
    """Return the event in the arguments of the tool.

    >>> event_of({"tool_name": "Bash", "tool_response": '{"stdout": "1"}', "cwd": "/src"})["tool_response"]
    {'stdout': '1'}
    """
    event: Event = {"hook_event_name": "PostToolUse", **arguments}
    for name in ("tool_input", "tool_response"):
        value = event.get(name)
        if isinstance(value, str):
            event[name] = _decoded(value, name == "tool_response" and _is_of_mcp(event))
    return event


def _is_of_mcp(event: Event) -> bool:
    return text_field(event, "tool_name").startswith("mcp__")


def _decoded(text: str, blocks_only: bool) -> Any:
    """Return the object, or the blocks of an MCP tool, that a text is as JSON; else the text. The
    structured result of an MCP tool is a text already."""
    try:
        value = decoded(text.encode()) if text[:1] in ("{", "[") else None
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text
    is_blocks = isinstance(value, list) and all(isinstance(each, dict) and "type" in each for each in value)
    return value if is_blocks or (isinstance(value, dict) and not blocks_only) else text


async def _offload(tools: Toolset, output: ToolOutput, claude_config: Path) -> Offloaded:
    with whole_of(output, claude_config) as whole:
        offload = tools.offload if isinstance(whole, (str, list)) else tools.offload_file
        return await offload(whole, output.source, output.call_id)
