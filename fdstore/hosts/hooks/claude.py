"""Claude Code: the hooks PostToolUse and, for what our own server reads, PreToolUse.

Claude Code takes a replacement only if it has the shape of the tool's output, and ignores any other
silently. So the output is copied with one text changed. Bash gives the hook the first 30,000 characters and
the path of a file with all of them; with that path in the replacement, the model would see a pointer to the
file and not the replacement, so it is left out. Outputs of MCP tools may be any list of blocks; of those
over 25,000 tokens the hook sees a text instead that says which file has them.

Read is left alone: the model chose the part that it reads, and editing needs what was read as it is.
"""

from __future__ import annotations

import re
from typing import Any

from fdstore.hosts.hooks.output import (
    Answer,
    Event,
    ToolOutput,
    call_id_of,
    is_long,
    readable,
    source_of,
    text_blocks,
    text_field,
)
from fdstore.hosts.hooks.own_tools import is_own_tool
from fdstore.tools.tool_names import READING_NAMES

TEXTS = {"Bash": "stdout", "BashOutput": "stdout", "Grep": "content", "WebFetch": "result"}
"""Tool -> the field of its output with the text that the model sees."""

BLOCKS = {"Agent": "content", "Task": "content"}
"""Tool -> the field of its output with the blocks that the model sees."""

PERSISTED = ("persistedOutputPath", "persistedOutputSize")

KEPT_IN_FILE = re.compile(
    r"Error: result \([^\n]*\) exceeds maximum allowed tokens\. Output has been saved to (/[^\n]+)\.\n"
    r"Format: (Plain text|JSON)"
)
"""The text that the hook sees for an output of an MCP tool that Claude Code has written to a file."""


PLUGIN_TOOL = "mcp__plugin_fdstore_fdstore__"
"""The prefix of Claude Code for the names of the tools of the plugin's server."""

PLUGIN_READING_TOOLS = tuple(PLUGIN_TOOL + tool for tool in READING_NAMES)


def permission_of(event: Event) -> Answer | None:
    """Return the answer to a PreToolUse event that lets the model read with the plugin's tools; None for
    any other event.

    Without it, Claude Code asks, or refuses where it cannot, as with `claude -p`; and a model that cannot
    read an output which was replaced has less than without the plugin.
    """
    tool = text_field(event, "tool_name")
    if text_field(event, "hook_event_name") != "PreToolUse" or tool not in PLUGIN_READING_TOOLS:
        return None
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}


def output_of(event: Event, limit: int) -> ToolOutput | None:
    """Return the output in a PostToolUse event, if it has a text longer than `limit` characters that may be
    replaced."""
    tool = text_field(event, "tool_name")
    if text_field(event, "hook_event_name") != "PostToolUse" or not tool or is_own_tool(tool):
        return None
    response = event.get("tool_response")
    field, file, is_json = None, None, False
    if tool.startswith("mcp__"):
        value: Any = response
        if isinstance(response, str) and (kept := KEPT_IN_FILE.match(response)):
            file, is_json = kept[1], kept[2] == "JSON"
        elif isinstance(response, str):  # a structured result is shown as its JSON
            value = text_blocks(response) or [{"type": "text", "text": readable(response)}]
    elif isinstance(response, dict) and not response.get("isImage"):
        field = TEXTS.get(tool) or BLOCKS.get(tool)
        value = response.get(field) if field else None
        if (tool in BLOCKS) != isinstance(value, list):
            return None
        if tool == "Bash":
            file = text_field(response, "persistedOutputPath") or None
    else:
        return None
    if not (file or is_long(value, limit)):
        return None

    def answer(shown: str | list[Any]) -> Answer:
        if field is None:
            updated: Any = [{"type": "text", "text": shown}] if isinstance(shown, str) else shown
        else:
            assert isinstance(response, dict)
            kept = {name: each for name, each in response.items() if name not in PERSISTED}
            updated = {**kept, field: shown}
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": updated}}

    return ToolOutput(
        value=value,
        file=file,
        is_json=is_json,
        source=source_of(tool, event.get("tool_input")),
        call_id=call_id_of(event, file or value),
        session=text_field(event, "session_id"),
        answer=answer,
    )
