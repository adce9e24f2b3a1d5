"""Codex: the hook PostToolUse. The reason of a "block" becomes the whole output that the model sees.

The hook sees all of what an MCP tool returned. Of a command's output it sees what Codex left of it, some
10,000 characters from the start and the end, marked as cut: that stays as it is, since what is cut out is
not there to be stored.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fdstore.hosts.hooks.output import (
    Answer,
    Event,
    ToolOutput,
    blocks_of_texts,
    call_id_of,
    is_long,
    joined_texts,
    readable,
    source_of,
    text_field,
    text_of,
)
from fdstore.hosts.hooks.own_tools import is_own_tool

CUT = "Warning: truncated output ("
"""The beginning of an output that Codex has cut."""


STRUCTURED = ("structuredContent", "structured_content")
"""The fields of an output that may have a structured result, in the order of their precedence."""


def output_of(event: Event, limit: int) -> ToolOutput | None:
    """Return the output in a PostToolUse event, if it is longer than `limit` characters and may be
    replaced."""
    tool = text_field(event, "tool_name")
    if text_field(event, "hook_event_name") != "PostToolUse" or not tool or is_own_tool(tool):
        return None
    value = _value_of(event.get("tool_response"), limit)
    if value is None or not is_long(value, limit) or _begins_cut(value):
        return None
    return ToolOutput(
        value=value,
        source=source_of(tool, event.get("tool_input")),
        call_id=call_id_of(event, value),
        session=text_field(event, "session_id"),
        answer=_answer,
    )


def _answer(shown: str | list[Any]) -> Answer:
    return {"decision": "block", "reason": shown if isinstance(shown, str) else joined_texts(shown)}


def _begins_cut(value: str | list[Any]) -> bool:
    return (value if isinstance(value, str) else str(value[0]["text"])).startswith(CUT)


def _value_of(response: object, limit: int) -> str | list[Any] | None:
    """Return the text, or the text blocks, that the model would see of a tool's output; None if it is more
    than that. Of a structured result Codex shows that alone."""
    if isinstance(response, str):
        return response
    if isinstance(response, dict):
        first, second = STRUCTURED
        structured = response.get(first, response.get(second))
        content = response.get("content")
        value = _value_of(content, limit)
        if structured is None or (content and value is None):
            return value
        return readable(msgspec.json.encode(structured).decode("utf-8"))
    if isinstance(response, list) and response:
        texts = [text_of(block) for block in response]
        found = [text for text in texts if text is not None]
        return blocks_of_texts(found, limit) if len(found) == len(texts) else None
    return None
