"""`tools/call`: run a tool, report its progress, and return its result as content blocks of MCP. What a model
gets wrong is a result too, with `isError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types

from fdstore.elements.render import fd_error
from fdstore.errors import FDStoreError
from fdstore.hosts.mcp.access import Access
from fdstore.hosts.mcp.protocol_errors import NotPermitted
from fdstore.hosts.mcp.tool_list import STORES_A_PART, HostTool
from fdstore.hosts.mcp.toolsets import Toolsets
from fdstore.programs.python_call import abandon
from fdstore.results.content_blocks import picture_in
from fdstore.results.context import Progress
from fdstore.results.pictures import Picture
from fdstore.results.tool_outcome import ToolResult, tool_result
from fdstore.results.wrapping import block_text, to_text
from fdstore.setup.settings import HOST_PATIENCE_S
from fdstore.text.surrogates import escape_surrogates
from fdstore.tools.built_in import run_python
from fdstore.tools.catalogue import BUILT_IN
from fdstore.wire.operation import new_op

if TYPE_CHECKING:
    from fdstore.toolset._async import Toolset

RUN_PYTHON = run_python.TOOL.name

EVERY_S = 0.25
"""The shortest time between two notifications of progress."""

Report = Callable[[float, float | None], Awaitable[None]]


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
            return _call_result(content if isinstance(content, ToolResult) else ToolResult(content))
        _check(access, name, arguments)
        tools = await toolsets.toolset(access)
        run = partial(_run_code, toolsets, access) if name == RUN_PYTHON else _run
        async with _reported(report) as progress:
            result = await run(tools, name, arguments, progress)
            # servers live for days, and trees can be removed meanwhile
            if result.is_error and "write" in access.permissions and await toolsets.restore(access):
                result = await run(tools, name, arguments, progress)
        return _call_result(result)
    except FDStoreError as error:
        return _call_result(tool_result(fd_error(error), is_error=True))


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
            with anyio.move_on_after(HOST_PATIENCE_S, shield=True), suppress(FDStoreError):
                await tools.process.store.run(abandon(tools._toolbox.context, call_id))
            raise


def _check(access: Access, name: str, arguments: dict[str, Any]) -> None:
    """Raise `NotPermitted` for a tool, or a use of one, that needs another permission."""
    permission = BUILT_IN[name].permission if name in BUILT_IN else None
    if permission is not None and permission not in access.permissions:
        raise NotPermitted(name, permission)
    if arguments.get(STORES_A_PART) not in (None, False) and "write" not in access.permissions:
        raise NotPermitted(f"{name} with {STORES_A_PART}", "write")


@asynccontextmanager
async def _reported(report: Report | None) -> AsyncIterator[Progress | None]:
    """Yield the function that a call tells its progress; the client gets it through `report`, and the last
    state in any case. Without `report` yield None."""
    if report is None:
        yield None
        return
    latest: list[tuple[int, int | None]] = []
    changed = asyncio.Event()

    def tell(done: int, total: int | None) -> None:
        latest[:] = [(done, total)]
        changed.set()

    async def forward() -> None:
        while True:
            await changed.wait()
            changed.clear()
            await report(*latest[0])
            await asyncio.sleep(EVERY_S)

    forwarding = asyncio.create_task(forward(), name="fdstore progress")
    try:
        yield tell
    finally:
        forwarding.cancel()
        await asyncio.wait([forwarding])
    if changed.is_set():
        await report(*latest[0])


def _call_result(result: ToolResult) -> types.CallToolResult:
    """Return a result with content alone: hosts would show structured content instead of the text. Blocks are
    those of the Messages API or of MCP; what neither has is shown as JSON."""
    blocks = [result.content] if isinstance(result.content, str) else result.content
    return types.CallToolResult(content=list(map(_block, blocks)), is_error=result.is_error)


def _block(block: Any) -> types.ContentBlock:
    if (text := block_text(block)) is None:
        if (picture := picture_in(block)) is not None:
            return _picture_block(picture)
        text = to_text(block)
    return types.TextContent(text=escape_surrogates(text))


def _picture_block(picture: Picture) -> types.ContentBlock:
    if picture.is_image:
        return types.ImageContent(data=picture.base64, mime_type=picture.media_type)
    blob = types.BlobResourceContents(uri="fdstore:", mime_type=picture.media_type, blob=picture.base64)
    return types.EmbeddedResource(resource=blob)
