"""Events of hooks, as hosts write them after a tool has run."""

from __future__ import annotations

from typing import Any


def after_tool(tool: str, response: Any, **fields: Any) -> dict[str, Any]:
    """Return the event PostToolUse of Claude Code, which Codex has too."""
    return {
        "hook_event_name": "PostToolUse",
        "session_id": "0ab1",
        "cwd": "/src/shop",
        "tool_name": tool,
        "tool_input": {"command": "make test", "timeout": 5},
        "tool_response": response,
        "tool_use_id": "toolu_1",
        **fields,
    }


def after_bash(stdout: str, **fields: Any) -> dict[str, Any]:
    """Return that of a command."""
    return after_tool("Bash", {"stdout": stdout, "stderr": "", "interrupted": False}, **fields)
