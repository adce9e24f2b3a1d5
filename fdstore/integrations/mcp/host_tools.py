"""Tools of other modules: hosts call them, as a hook of a plugin does, and models need not.

They are listed after ours, since a host calls no tool that is not listed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

import mcp_types as types
import msgspec

from fdstore.errors import InvalidArgument
from fdstore.results.tool_outcome import ToolResult
from fdstore.tools.catalogue import BUILT_IN

HostContent: TypeAlias = str | list[Any] | ToolResult
"""A text, content blocks of the Messages API or of MCP, or either with an error flag."""


class HostTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool for hosts: `run` gets the arguments unchecked, and returns what the host is to see. It raises
    typed errors of ours for what the caller got wrong."""

    name: str
    description: str
    run: Callable[[dict[str, Any]], Awaitable[HostContent]]
    input_schema: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "object"})

    def described(self) -> types.Tool:
        """Return the tool as MCP describes it."""
        return types.Tool(name=self.name, description=self.description, input_schema=self.input_schema)


def by_name(tools: Iterable[HostTool]) -> dict[str, HostTool]:
    """Return tools by their names. Raises `InvalidArgument` for a name that is taken."""
    found: dict[str, HostTool] = {}
    for tool in tools:
        if tool.name in found or tool.name in BUILT_IN:
            raise InvalidArgument("host_tools", f"there is a tool {tool.name} already")
        found[tool.name] = tool
    return found
