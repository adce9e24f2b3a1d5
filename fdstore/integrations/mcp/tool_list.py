"""The tools as MCP describes them: schemas of `Toolset`, hints for hosts, and keys that hosts look for.

No tool has an output schema: hosts then show a structured result alone and drop the text, and our frames are
the text.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types

from fdstore.integrations.mcp.access import Access
from fdstore.integrations.mcp.toolsets import Toolsets
from fdstore.tools.definition_shapes import in_shape

TITLES = {
    "read_fd": "Read a stored text",
    "search_fd": "Search a stored text",
    "list_fds": "List stored texts",
    "put_fd": "Store a text",
    "write_fd": "Write a stored text",
    "close_fd": "Drop a stored text",
    "fd_to_file": "Save a stored text",
    "pipe": "Run programs over a stored text",
    "wait": "Wait for a process",
    "kill": "Cancel a process",
}

READING = frozenset({"read_fd", "search_fd", "list_fds", "wait"})
"""Tools that change nothing. A part that they store on request is an addition, which no host asks about."""

DESTROYING = frozenset({"close_fd", "fd_to_file", "kill"})

REPEATABLE = READING | {"close_fd", "kill"}

ALWAYS_LOADED = frozenset({"read_fd", "search_fd"})
"""Tools that Claude Code offers from the first turn, instead of behind its search for tools."""

FRAME_CHARS = 10_000
"""Room for the frame of a result."""

STORES_A_PART = "extract_to_new_fd"
"""The argument by which a reading tool makes a descriptor."""


def list_tools(toolsets: Toolsets, access: Access) -> list[types.Tool]:
    """Return the tools that this access offers, always in the same order."""
    definitions = in_shape(toolsets.describe(access).definitions, "mcp")
    # what Claude Code keeps in the conversation, and not in a file: the largest read, and what escaping adds
    result_chars = 2 * toolsets.options.config.max_read_chars + FRAME_CHARS
    return [_described(definition, access, result_chars) for definition in definitions]


def _described(definition: dict[str, Any], access: Access, result_chars: int) -> types.Tool:
    name, schema = definition["name"], definition["inputSchema"]
    if "write" not in access.permissions:
        properties = {key: each for key, each in schema["properties"].items() if key != STORES_A_PART}
        schema = {**schema, "properties": properties}
    meta: dict[str, Any] = {}
    if name in ALWAYS_LOADED:
        meta = {"anthropic/alwaysLoad": True, "anthropic/maxResultSizeChars": result_chars}
    return types.Tool(
        name=name,
        title=TITLES.get(name),
        description=definition["description"],
        input_schema=schema,
        annotations=types.ToolAnnotations(
            read_only_hint=name in READING,
            destructive_hint=name in DESTROYING,
            idempotent_hint=name in REPEATABLE,
            open_world_hint=False,
        ),
        _meta=meta or None,
    )
