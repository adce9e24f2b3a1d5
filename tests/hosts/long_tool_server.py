"""An MCP server of the tests: its tool `report` returns 2 MB or some rows, structured on request."""

from __future__ import annotations

import sys

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

TEXT = "".join(f"row {number}: a value that is long enough to fill some lines\n" for number in range(34_000))


async def list_tools(*_: object) -> types.ListToolsResult:
    properties = {"structured": {"type": "boolean"}, "rows": {"type": "integer"}}
    schema = {"type": "object", "properties": properties}
    return types.ListToolsResult(
        tools=[types.Tool(name="report", description="A report.", input_schema=schema)]
    )


async def call_tool(_: object, params: types.CallToolRequestParams) -> types.CallToolResult:
    arguments = params.arguments or {}
    text = "".join(TEXT.splitlines(keepends=True)[: arguments.get("rows")])
    structured = {"result": text} if arguments.get("structured") else None
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=structured)


async def main() -> None:
    server = Server("reports", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    sys.exit(anyio.run(main))
