"""Requests to a scripted model, parsed for scripts and assertions.

A `Request` is recorded even if the API rules refuse it, so that a test can inspect it. So parsing accepts any
JSON object, and treats malformed parts as empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from fdstore.testing.replies import Json

SHOWN_CHARS = 60
"""Maximum text in the `repr` of a request."""


class ToolResult(NamedTuple):
    """A tool result: the id of its call, its text, and whether the tool failed. A result that loads tools has
    nothing else; its text is that after the results of its message."""

    tool_use_id: str
    text: str
    is_error: bool


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request for an answer, to any of the APIs.

    `system` is the system prompt as one text (its blocks joined by LF), `messages` the conversation in the
    form of the Messages API, whichever it was sent to, `tools` the names of the tools, deferred ones too,
    `raw` the whole body as sent, `headers` by lower-case name.

        def script(request):
            if request.turn_number == 0:
                return call("read_fd", fd="fd:1")
            return say(f"It says: {request.last_text()}")
    """

    system: str
    messages: tuple[Json, ...]
    tools: tuple[str, ...]
    raw: Json
    headers: dict[str, str]

    @property
    def turn_number(self) -> int:
        """The number of assistant messages in the conversation: 0 in the first request of an agent."""
        return sum(message.get("role") == "assistant" for message in self.messages)

    @property
    def unloaded(self) -> frozenset[str]:
        """The tools with `defer_loading` that no `tool_reference` of the conversation has loaded. A model
        does not see them, so a reply that calls one is refused."""
        tools = blocks_of(self.raw.get("tools"))
        deferred = {str(tool.get("name")) for tool in tools if tool.get("defer_loading")}
        return frozenset(deferred - referenced_tools(list(self.messages)))

    def last_text(self) -> str:
        """Return the text of the last user message, including tool results, blocks joined by LF."""
        for message in reversed(self.messages):
            if message.get("role") == "user":
                return text_of(message.get("content"))
        return ""

    def tool_results(self) -> list[ToolResult]:
        """Return all tool results of the conversation, oldest first."""
        return [
            ToolResult(
                str(block.get("tool_use_id")), _text_of_result(block, blocks), bool(block.get("is_error"))
            )
            for blocks in (blocks_of(message.get("content")) for message in self.messages)
            for block in blocks
            if block.get("type") == "tool_result"
        ]

    def __repr__(self) -> str:
        text = self.last_text()
        shown = text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "..."
        return f"Request(turn_number={self.turn_number}, tools={list(self.tools)}, last_text={shown!r})"


def read_request(raw: Json, headers: Mapping[str, str]) -> Request:
    """Build a request from its JSON body and HTTP headers."""
    return Request(
        system=text_of(raw.get("system")),
        messages=tuple(blocks_of(raw.get("messages"))),
        tools=tuple(str(tool["name"]) for tool in blocks_of(raw.get("tools")) if "name" in tool),
        raw=raw,
        headers={name.lower(): value for name, value in headers.items()},
    )


def blocks_of(content: object) -> list[Json]:
    """Return the objects in a JSON array; [] for anything else."""
    return [item for item in content if isinstance(item, dict)] if isinstance(content, list) else []


def text_of(content: object) -> str:
    """Return the text in the content of a message, a tool result or a system prompt."""
    if isinstance(content, str):
        return content
    return "\n".join(text for block in blocks_of(content) if (text := _block_text(block)))


def referenced_tools(messages: object) -> set[str]:
    """Return the names in the `tool_reference` blocks of messages."""
    return {
        str(inner.get("tool_name"))
        for message in blocks_of(messages)
        for block in blocks_of(message.get("content"))
        for inner in blocks_of(block.get("content"))
        if inner.get("type") == "tool_reference"
    }


def _text_of_result(result: Json, blocks: list[Json]) -> str:
    content = result.get("content")
    if any(block.get("type") == "tool_reference" for block in blocks_of(content)):
        content = [block for block in blocks if block.get("type") != "tool_result"]
    return text_of(content)


def _block_text(block: Json) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "tool_result", "content": content}:
            return text_of(content)
    return ""
