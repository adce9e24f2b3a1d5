"""fdstore's own tools: what they return is never replaced, or nothing could be read back."""

from __future__ import annotations

import re

HOOK_TOOL = "offload_output"
"""The tool by which a host hands an output to fdstore's own MCP server."""

READING_TOOLS = ("read_fd", "search_fd", "list_fds")
"""The tools that change nothing; `fdstore.tools.catalogue` takes long to import."""

_OWN_NAME = re.compile(
    r"(?:.*_)?(?:(?:read|search|put|write|close)_fd|list_fds|fd_to_file|" + HOOK_TOOL + r")"
)
_OWN_SERVER = re.compile(r"mcp_(?:.*_)?fdstore_.*")


def is_own_tool(name: str) -> bool:
    """Return whether a tool is ours: by its own name, under any server, or by a server called fdstore.

    A gateway offers our tools under the name of the server behind it, with a prefix if that has such a tool.

    >>> [is_own_tool(name) for name in ("mcp__plugin_fdstore_fdstore__wait", "mcp__github__read_fd", "Bash")]
    [True, True, False]
    """
    return bool(_OWN_NAME.fullmatch(name) or _OWN_SERVER.fullmatch(name))
