"""The tools as MCP describes them: schemas of `Toolset`, hints for hosts, and keys that hosts look for.

Tools of other modules, which hosts call as a plugin's hook does and models need not, are listed after ours: a
host calls no tool that is not listed. No tool has an output schema: hosts then show a structured result alone
and drop the text, and our frames are the text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import mcp_types as types
import msgspec

from fdstore.errors import InvalidArgument
from fdstore.hosts.mcp.access import Access
from fdstore.hosts.mcp.toolsets import Toolsets
from fdstore.results.tool_outcome import ToolResult
from fdstore.tools.catalogue import BUILT_IN
from fdstore.tools.definition_shapes import in_shape

if TYPE_CHECKING:
    from fdstore.tools.toolbox import Toolbox

FRAME_CHARS = 10_000
"""Room for the frame of a result."""

STORES_A_PART = "extract_to_new_fd"
"""The argument by which a reading tool makes a descriptor."""


def list_tools(toolsets: Toolsets, access: Access) -> list[types.Tool]:
    """Return the tools that this access offers, always in the same order."""
    toolbox = toolsets.describe(access)
    definitions = in_shape(toolbox.definitions, "mcp")
    # what Claude Code keeps in the conversation, and not in a file: the largest read, and what escaping adds
    result_chars = 2 * toolsets.options.config.max_read_chars + FRAME_CHARS
    return [_described(definition, toolbox, access, result_chars) for definition in definitions]


def _described(definition: dict[str, Any], toolbox: Toolbox, access: Access, result_chars: int) -> types.Tool:
    name, schema = definition["name"], definition["inputSchema"]
    description = definition["description"]
    if "write" not in access.permissions:
        properties = {key: each for key, each in schema["properties"].items() if key != STORES_A_PART}
        schema = {**schema, "properties": properties}
    tool = BUILT_IN.get(name)  # a function of the user has no facts
    if tool is not None and tool.works_on == "descriptors" and tool.section:
        # the instructions of the server, which hosts cut, have no room for its section
        description += "\n" + tool.explain(toolbox.context).partition("\n")[2]
    meta: dict[str, Any] = {}
    if tool is not None and tool.preloaded:
        # Claude Code offers it from the first turn
        meta = {"anthropic/alwaysLoad": True, "anthropic/maxResultSizeChars": result_chars}
    return types.Tool(
        name=name,
        title=None if tool is None else tool.title,
        description=description,
        input_schema=schema,
        annotations=types.ToolAnnotations(
            read_only_hint=tool is not None and tool.effect == "reads",
            destructive_hint=tool is not None and tool.effect == "destroys",
            idempotent_hint=tool is not None and tool.is_repeatable,
            open_world_hint=False,
        ),
        _meta=meta or None,
    )


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
