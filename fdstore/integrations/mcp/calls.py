"""`tools/call`: run a tool and return its result. What a model gets wrong is a result too, with `isError`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import mcp_types as types

from fdstore.errors import FDStoreError
from fdstore.integrations.mcp.access import Access
from fdstore.integrations.mcp.content import call_result, error_result
from fdstore.integrations.mcp.host_tools import HostTool
from fdstore.integrations.mcp.progress import Report, reported
from fdstore.integrations.mcp.refusals import NotPermitted
from fdstore.integrations.mcp.tool_list import STORES_A_PART
from fdstore.integrations.mcp.toolsets import PATIENCE_S, Toolsets
from fdstore.programs.course import abandon
from fdstore.results.context import Progress
from fdstore.results.tool_outcome import ToolResult
from fdstore.tools.built_in import run_python
from fdstore.tools.catalogue import BUILT_IN
from fdstore.toolset._async import Toolset
from fdstore.wire.operation import new_op

RUN_PYTHON = run_python.TOOL.name


async def call_tool(
    toolsets: Toolsets,
    host_tools: Mapping[str, HostTool],
    access: Access,
    name: str,
    arguments: dict[str, Any],
    report: Report | None = None,
) -> types.CallToolResult:
    """Run a call with the permissions of `access`. Errors of ours, those of the store included, are results;
    `report` gets the progress of long calls."""
    try:
        host_tool = host_tools.get(name)
        if host_tool is not None:
            content = await host_tool.run(arguments)
            return call_result(content if isinstance(content, ToolResult) else ToolResult(content))
        _check(access, name, arguments)
        tools = await toolsets.toolset(access)
        run = partial(_run_code, toolsets, access) if name == RUN_PYTHON else _run
        async with reported(report) as progress:
            result = await run(tools, name, arguments, progress)
            # servers live for days, and trees can be removed meanwhile
            if result.is_error and "write" in access.permissions and await toolsets.restore(access):
                result = await run(tools, name, arguments, progress)
        return call_result(result)
    except FDStoreError as error:
        return error_result(error)


async def _run(tools: Toolset, name: str, arguments: dict[str, Any], progress: Progress | None) -> ToolResult:
    return await tools.call(name, arguments, progress=progress)


async def _run_code(
    toolsets: Toolsets,
    access: Access,
    tools: Toolset,
    name: str,
    arguments: dict[str, Any],
    progress: Progress | None,
) -> ToolResult:
    """Run code in its turn. If its host cancels the call, end what the code has begun."""
    call_id = new_op()
    async with toolsets.turn_to_run(access):
        try:
            return await tools.call(name, arguments, call_id, progress)
        except asyncio.CancelledError:
            with anyio.move_on_after(PATIENCE_S, shield=True), suppress(FDStoreError):
                await tools.process.store.run(abandon(tools._toolbox.context, call_id))
            raise


def _check(access: Access, name: str, arguments: dict[str, Any]) -> None:
    """Raise `NotPermitted` for a tool, or a use of one, that needs another permission."""
    permission = BUILT_IN[name].permission if name in BUILT_IN else None
    if permission is not None and permission not in access.permissions:
        raise NotPermitted(name, permission)
    if arguments.get(STORES_A_PART) not in (None, False) and "write" not in access.permissions:
        raise NotPermitted(f"{name} with {STORES_A_PART}", "write")
