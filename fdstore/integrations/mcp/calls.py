"""`tools/call`: run a tool and return its result. What a model gets wrong is a result too, with `isError`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import mcp_types as types

from fdstore.errors import FDStoreError
from fdstore.integrations.mcp.access import Access
from fdstore.integrations.mcp.content import call_result, error_result
from fdstore.integrations.mcp.host_tools import HostTool
from fdstore.integrations.mcp.progress import Report, reported
from fdstore.integrations.mcp.refusals import NotPermitted
from fdstore.integrations.mcp.tool_list import STORES_A_PART
from fdstore.integrations.mcp.toolsets import Toolsets
from fdstore.results.tool_outcome import ToolResult
from fdstore.tools.built_in import run_python
from fdstore.tools.catalogue import BUILT_IN

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
        turn = toolsets.turn_to_run(access) if name == RUN_PYTHON else nullcontext()
        async with reported(report) as progress, turn:
            result = await tools.call(name, arguments, progress=progress)
            # servers live for days, and trees can be removed meanwhile
            if result.is_error and "write" in access.permissions and await toolsets.restore(access):
                result = await tools.call(name, arguments, progress=progress)
        return call_result(result)
    except FDStoreError as error:
        return error_result(error)


def _check(access: Access, name: str, arguments: dict[str, Any]) -> None:
    """Raise `NotPermitted` for a tool, or a use of one, that needs another permission."""
    permission = BUILT_IN[name].permission if name in BUILT_IN else None
    if permission is not None and permission not in access.permissions:
        raise NotPermitted(name, permission)
    if arguments.get(STORES_A_PART) not in (None, False) and "write" not in access.permissions:
        raise NotPermitted(f"{name} with {STORES_A_PART}", "write")
