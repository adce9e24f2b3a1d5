"""Gemini CLI: the hook AfterTool. The reason of a "deny" replaces the output that the model sees.

`tool_response` has `llmContent`: a text, a part (`{"text": ...}`), or a list of these, and `error` if the
call failed. An output with other parts, as pictures, stays as it is. So does what a reading tool returned:
the model chose the part that it reads.
"""

from __future__ import annotations

import re
from typing import Any

from fdstore.hosts.hooks.output import (
    Answer,
    Event,
    ToolOutput,
    blocks_of_texts,
    is_long,
    joined_texts,
    source_of,
    text_field,
)
from fdstore.hosts.hooks.own_tools import is_own_tool

OUTCOME = "the call has {outcome}; its output is long, so it was stored:"
"""Gemini CLI puts "Tool result blocked: " before the reason, and marks each call as failed."""

_EXIT_CODE = re.compile(r"^Exit Code: (-?\d+)$", re.MULTILINE)
_END_CHARS = 2000
"""The end of a command's output, where its exit code is."""

LEFT_ALONE = frozenset({"read_file", "read_many_files", "activate_skill"})


def output_of(event: Event, limit: int) -> ToolOutput | None:
    """Return the output in an AfterTool event, if it is longer than `limit` characters and may be
    replaced."""
    tool = text_field(event, "tool_name")
    if text_field(event, "hook_event_name") != "AfterTool" or not tool or tool in LEFT_ALONE:
        return None
    context, response = event.get("mcp_context"), event.get("tool_response")
    names = context if isinstance(context, dict) else {}
    of_server = f"mcp_{text_field(names, 'server_name')}_{text_field(names, 'tool_name')}"
    if is_own_tool(tool) or is_own_tool(of_server) or not isinstance(response, dict):
        return None
    value = _value_of(response.get("llmContent"), limit)
    if value is None or not is_long(value, limit):
        return None
    outcome = "failed" if _has_failed(tool, response.get("error"), value) else "succeeded"

    def answer(shown: str | list[Any]) -> Answer:
        text = shown if isinstance(shown, str) else joined_texts(shown)
        return {"decision": "deny", "reason": f"{OUTCOME.format(outcome=outcome)}\n{text}"}

    return ToolOutput(
        value=value,
        source=source_of(tool, event.get("tool_input")),
        session=text_field(event, "session_id"),
        answer=answer,
    )


def _has_failed(tool: str, error: object, value: str | list[Any]) -> bool:
    """Return whether a call failed: its result has an error, or its command an exit code other than 0."""
    if error:
        return True
    last = value if isinstance(value, str) else str(value[-1]["text"])
    codes = _EXIT_CODE.findall(last[-_END_CHARS:]) if tool == "run_shell_command" else []
    return bool(codes) and codes[-1] != "0"


def _value_of(content: object, limit: int) -> str | list[Any] | None:
    """Return the text of `llmContent`, or the texts of its parts as blocks; None if it has other parts."""
    parts = content if isinstance(content, list) else [content]
    texts: list[str] = []
    for part in parts:
        if isinstance(part, dict) and set(part) == {"text"}:
            part = part["text"]
        if not isinstance(part, str):
            return None
        texts.append(part)
    return blocks_of_texts(texts, limit, separator="")
