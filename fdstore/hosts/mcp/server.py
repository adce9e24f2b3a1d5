"""`build_server`: a toolset as a `Server` of the SDK, which serves both protocol eras on any transport.

What answers a request is imported with the first of its kind: hosts give servers little time to begin.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server

from fdstore import __version__
from fdstore.errors import FDStoreError
from fdstore.hosts.mcp.access import Access
from fdstore.hosts.mcp.protocol_errors import as_protocol_errors
from fdstore.hosts.mcp.questions import Elicitations
from fdstore.hosts.mcp.tool_list import HostTool, by_name, list_tools
from fdstore.hosts.mcp.toolsets import OpenToolset, Toolsets
from fdstore.hosts.mcp.updates import Updates
from fdstore.tools.catalogue import usable_tools
from fdstore.tools.instructions import uses

if TYPE_CHECKING:
    from fdstore.hosts.mcp.calls import Report
    from fdstore.results.context import Context
    from fdstore.toolset._async import Toolset

log = logging.getLogger("fdstore.mcp")

RequestContext: TypeAlias = ServerRequestContext[Any, Any]

FindAccess: TypeAlias = Callable[[RequestContext], Access]
"""Returns what the caller of a request may do."""

LISTS_FRESH_MS = 300_000
"""The time for which clients may keep lists that change only with the server's options."""


def build_server(
    tools: Toolset | Toolsets,
    *,
    host_tools: Iterable[HostTool] = (),
    find_access: FindAccess | None = None,
) -> Server[Any]:
    """Return a server for a toolset, or for the toolsets of several processes.

    host_tools   tools of another module, listed after ours
    find_access  returns what the caller of a request may do, and raises typed errors; by default callers may
                 do everything that the toolset offers

    Raises `InvalidArgument` for a host tool whose name is taken.
    """
    toolsets = tools if isinstance(tools, Toolsets) else OpenToolset(tools)
    hosts = by_name(host_tools)
    updates, questions = Updates(toolsets), Elicitations(toolsets)

    def access_of(context: RequestContext) -> Access:
        return toolsets.default if find_access is None else find_access(context)

    async def on_list_tools(
        context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        with as_protocol_errors():
            access = access_of(context)
            questions.begin(access, context.session)
            listed = list_tools(toolsets, access)
        return types.ListToolsResult(tools=listed + [tool.described() for tool in hosts.values()])

    async def on_call_tool(
        context: RequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        from fdstore.hosts.mcp.calls import call_tool

        with as_protocol_errors():
            access = access_of(context)
        questions.begin(access, context.session)
        asked = await questions.before_call(access, context.session, params.input_responses)
        if asked is not None:
            return asked
        arguments, report = params.arguments or {}, _report_of(context)
        return await call_tool(toolsets, hosts, access, params.name, arguments, report)

    async def on_list_resources(
        context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        from fdstore.hosts.mcp.resources import list_resources

        with as_protocol_errors():
            return await list_resources(toolsets, access_of(context), params.cursor if params else None)

    async def on_list_templates(
        context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        from fdstore.hosts.mcp.resources import list_templates

        return list_templates()

    async def on_read_resource(
        context: RequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        from fdstore.hosts.mcp.resources import read_resource

        with as_protocol_errors(params.uri):
            return await read_resource(toolsets, access_of(context), params.uri)

    async def on_list_prompts(
        context: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        from fdstore.hosts.mcp.prompts import list_prompts

        return list_prompts()

    async def on_get_prompt(
        context: RequestContext, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        from fdstore.hosts.mcp.prompts import get_prompt

        with as_protocol_errors():
            return get_prompt(params.name, params.arguments or {})

    async def on_completion(
        context: RequestContext, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        from fdstore.hosts.mcp.prompts import complete

        with as_protocol_errors():
            return await complete(toolsets, access_of(context), params)

    async def on_subscribe(
        context: RequestContext, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        with as_protocol_errors(params.uri):
            await updates.subscribe(access_of(context), context.session, params.uri)
        return types.EmptyResult()

    async def on_unsubscribe(
        context: RequestContext, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        updates.unsubscribe(context.session, params.uri)
        return types.EmptyResult()

    async def on_listen(
        context: RequestContext, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        with as_protocol_errors():
            return await updates.listen(access_of(context), context, params)

    @asynccontextmanager
    async def lifespan(_: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        first = toolsets.toolset if find_access is None else toolsets.store
        connecting = asyncio.create_task(_connect_early(first), name="fdstore connect")
        try:
            yield {}
        finally:
            connecting.cancel()
            await asyncio.wait([connecting])
            await updates.close()
            await questions.close()
            await toolsets.close()

    fresh = CacheHint(ttl_ms=LISTS_FRESH_MS)
    return Server(
        "fdstore",
        version=__version__,
        title="fdstore",
        instructions=_instructions(toolsets.context()),
        cache_hints={
            "tools/list": fresh,
            "prompts/list": fresh,
            "resources/templates/list": fresh,
            "server/discover": fresh,
        },
        lifespan=lifespan,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
        on_list_prompts=on_list_prompts,
        on_get_prompt=on_get_prompt,
        on_completion=on_completion,
        on_list_resources=on_list_resources,
        on_list_resource_templates=on_list_templates,
        on_read_resource=on_read_resource,
        on_subscribe_resource=on_subscribe,
        on_unsubscribe_resource=on_unsubscribe,
        on_subscriptions_listen=on_listen,
    )


def _instructions(context: Context) -> str:
    """Return what ids mean and what the tools are for, in a few lines: hosts put them into the system prompt,
    and Claude Code cuts them at 2048 characters."""
    size = context.config.default_page_size
    return (
        "fdstore keeps large texts, such as logs, files and outputs of tools, outside the conversation. Each "
        "has an id: fd:1, fd:2, ..., or name:KEY. An <fd_result> shows such an id with the first page, or "
        f"what kind of text it is, and its end. Pages have at most {size} characters and end at line ends "
        "where possible; pages, lines and characters count from 1. In what you read, "
        '"<" of tags like these is shown as "&lt;" where the element says escaped="true".\n'
        f"{uses(context, [*usable_tools(context).values()])}"
    )


def _report_of(context: RequestContext) -> Report | None:
    """Return the function that reports progress; None if the client asked for none."""
    if not context.meta or context.meta.get("progress_token") is None:
        return None
    return context.session.report_progress


async def _connect_early(connect: Callable[[], Awaitable[object]]) -> None:
    """Connect before the first call. An error is the result of calls, and a line in the log."""
    try:
        await connect()
    except FDStoreError as error:
        log.warning("%s: %s; calls fail until this is over", error.type, error)
