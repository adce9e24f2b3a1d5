"""fdstore's own tools: what they return is never replaced, or nothing could be read back."""

from __future__ import annotations

import re

from fdstore.tools.tool_names import BUILT_IN_NAMES

HOOK_TOOL = "offload_output"
"""The tool by which a host hands an output to fdstore's own MCP server."""

_SAY_FD = [name for name in BUILT_IN_NAMES if not {"fd", "fds"}.isdisjoint(name.split("_"))]

_OWN_NAME = re.compile(rf"(?:.*_)?(?:{'|'.join([*_SAY_FD, HOOK_TOOL])})")
_OWN_SERVER = re.compile(rf"mcp_(?:.*_)?fdstore_.*|mcp_+fd_+(?:{'|'.join(BUILT_IN_NAMES)})")


def is_own_tool(name: str) -> bool:
    """Return whether a tool is ours: a name of ours with `fd` in it under any server, each of our names under
    a server called fd, as in our pages, and every tool of a server called fdstore.

    A gateway offers our tools under the name of the server behind it, with a prefix if that has such a tool.
    Other servers too have a `wait` or a `run_python`, whose outputs may be long.

    >>> [is_own_tool(name) for name in ("mcp__logs__sql_fd", "mcp__fd__wait", "mcp_fdstore_wait")]
    [True, True, True]
    >>> [is_own_tool(name) for name in ("mcp__jobs__wait", "Bash")]
    [False, False]
    """
    return bool(_OWN_NAME.fullmatch(name) or _OWN_SERVER.fullmatch(name))
