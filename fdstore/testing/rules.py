"""The request validation of the Messages API, which catches bugs in agent loops.

A model that accepts anything would hide the mistakes that tests are for: a tool call without a result, an
empty text block, a fifth cache breakpoint. So requests are checked against the rules that the real API
enforces on conversations. Shapes are msgspec types; rules between parts are code below. Rules about models,
prices or beta features are left out: they change, and no loop depends on them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from fdstore.model.msgspec_types import prepare
from fdstore.testing.replies import Json, ToolUse, Turn, signature_of
from fdstore.testing.requests import Request, blocks_of, referenced_tools

MAX_CACHE_BREAKPOINTS = 4
T = TypeVar("T")
Feature = Literal[
    "defer_loading",
    "tool_reference",
    "max_completion_tokens",
    "stream_options",
    "reasoning_content",
    "include",
]
"""What servers other than those whose API it is may refuse."""

ToolName = Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9_-]{1,128}\Z")]


class RequestRefused(Exception):
    """The request breaks a rule; the text says which, and where in the request."""


class _Text(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    text: str
    citations: list[Json] | None = None
    cache_control: Json | None = None


class _ToolUse(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    id: Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9_-]+\Z")]
    name: Annotated[str, msgspec.Meta(min_length=1)]
    input: Json
    cache_control: Json | None = None
    caller: Json | None = None
    toolset_name: str | None = None


class _ToolResult(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    tool_use_id: str
    content: str | list[Json] = ""
    is_error: bool | None = None
    cache_control: Json | None = None
    toolset_name: str | None = None


class _ToolReference(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    tool_name: str
    cache_control: Json | None = None


class _Thinking(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    thinking: str
    signature: str


SHAPES: dict[str, Any] = {
    "text": _Text,
    "tool_use": _ToolUse,
    "tool_result": _ToolResult,
    "tool_reference": _ToolReference,
    "thinking": _Thinking,
}
"""The block types whose fields are validated; images, documents and server tools are accepted unchecked."""


class _Message(msgspec.Struct):
    role: Literal["user", "assistant", "system"]
    content: str | list[Json]


class _Tool(msgspec.Struct):
    name: ToolName | None = None
    type: str | None = None
    input_schema: Json | None = None
    defer_loading: bool = False
    cache_control: Json | None = None


class _ToolChoice(msgspec.Struct):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None


class _Conversation(msgspec.Struct):
    model: Annotated[str, msgspec.Meta(min_length=1)]
    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)]
    system: str | list[_Text] = ""
    tools: list[_Tool] = []
    tool_choice: _ToolChoice | None = None


class _Creation(_Conversation, kw_only=True):
    max_tokens: Annotated[int, msgspec.Meta(ge=1)]
    stream: bool | None = None
    stop_sequences: list[str] | None = None


class _Part(msgspec.Struct, frozen=True):
    """A block with its position in the API's notation: `messages.2.content.0`."""

    where: str
    block: Json

    @property
    def type(self) -> str:
        return str(self.block["type"])


def check_creation(raw: Json) -> None:
    """Raise `RequestRefused` if `POST /v1/messages` would not accept this body."""
    _check(raw, shaped(raw, _Creation))


def check_features(raw: Json, refused: Collection[Feature]) -> None:
    """Raise `RequestRefused` if a body has one of these features, as servers do that do not know it."""
    if "defer_loading" in refused:
        for number, tool in enumerate(blocks_of(raw.get("tools"))):
            if "defer_loading" in tool:
                raise RequestRefused(f"tools.{number}.defer_loading: extra inputs are not permitted")
    for name in ("max_completion_tokens", "stream_options", "include"):
        if name in refused and name in raw:
            raise RequestRefused(f"Unrecognized request argument supplied: {name}")
    for number, message in enumerate(blocks_of(raw.get("messages"))):
        if "reasoning_content" in refused and "reasoning_content" in message:
            raise RequestRefused(f"messages.{number}.reasoning_content: extra inputs are not permitted")
    if "tool_reference" in refused and (named := referenced_tools(raw.get("messages"))):
        raise RequestRefused(f"messages: unknown content block `tool_reference` of {sorted(named)[0]}")


def check_calls(turn: Turn, request: Request) -> None:
    """Raise `RequestRefused` if a reply calls a tool whose definition no model could have seen."""
    called = {block.name for block in turn.blocks if isinstance(block, ToolUse)}
    if unseen := sorted(called & request.unloaded):
        raise RequestRefused(
            f"the script calls {unseen[0]}, a deferred tool that nothing in the conversation has loaded"
        )


def check_count(raw: Json) -> None:
    """Raise `RequestRefused` if `POST /v1/messages/count_tokens` would not accept this body."""
    _check(raw, shaped(raw, _Conversation))


def _check(raw: Json, conversation: _Conversation) -> None:
    if conversation.messages[0].role != "user":
        raise RequestRefused('messages: the first message must use the "user" role')
    _check_tools(conversation)
    if isinstance(conversation.system, list) and any(not block.text for block in conversation.system):
        raise RequestRefused("system: text content blocks must be non-empty")
    turns = _turns(conversation.messages)
    names = {tool.name for tool in conversation.tools}
    for role, parts in turns:
        for part in parts:
            _check_part(role, part)
            if part.type == "tool_result":
                _check_result(part, names)
    _check_calls_are_answered(turns)
    _check_breakpoints(raw)


def shaped(value: object, shape: type[T], where: str = "") -> T:
    """Return a part of a request in its shape. Raises `RequestRefused` with its place."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        inside = path.rstrip("`").replace("[", ".").replace("]", "")
        raise RequestRefused(f"{(where + inside).lstrip('.') or 'request'}: {problem}") from error


def _turns(messages: list[_Message]) -> list[tuple[str, list[_Part]]]:
    """Group the messages into turns as the API does: consecutive messages of one role are one turn; `system`
    messages in between belong to none."""
    turns: list[tuple[str, list[_Part]]] = []
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        if not message.content and not (message.role == "assistant" and message is messages[-1]):
            raise RequestRefused(f"{where}: all messages must have content, except a final assistant message")
        parts = _parts(where, message.content)
        if message.role == "system":
            continue
        if turns and turns[-1][0] == message.role:
            turns[-1][1].extend(parts)
        else:
            turns.append((message.role, parts))
    return turns


def _parts(where: str, content: str | list[Json]) -> list[_Part]:
    if isinstance(content, str):
        return [_Part(where, {"type": "text", "text": content})] if content else []
    parts = [_Part(f"{where}.content.{number}", block) for number, block in enumerate(content)]
    for part in parts:
        if not isinstance(part.block.get("type"), str):
            raise RequestRefused(f"{part.where}.type: a content block must have a type")
        if (shape := SHAPES.get(part.type)) is not None:
            shaped(part.block, shape, part.where)
    return parts


def _check_part(role: str, part: _Part) -> None:
    match part.block:
        case {"type": "text", "text": str(text)} if not text.strip():
            raise RequestRefused(f"{part.where}: text content blocks must contain non-whitespace text")
        case {"type": "tool_use" | "thinking" as kind} if role != "assistant":
            raise RequestRefused(f"{part.where}: `{kind}` blocks can only be in `assistant` messages")
        case {"type": "tool_result"} if role != "user":
            raise RequestRefused(f"{part.where}: `tool_result` blocks can only be in `user` messages")
        case {"type": "tool_reference"}:
            raise RequestRefused(f"{part.where}: `tool_reference` blocks can only be in `tool_result` blocks")
        case {"type": "document" | "search_result"} if _has_empty_text(part.block):
            raise RequestRefused(f"{part.where}: text content blocks must be non-empty")
        case {"type": "thinking", "thinking": str(thinking), "signature": str(signature)}:
            if signature.startswith("scripted-") and signature != signature_of(thinking):
                raise RequestRefused(f"{part.where}: a `thinking` block must be sent back as it was received")


def _check_result(part: _Part, names: Collection[str | None]) -> None:
    """Check the content of a `tool_result`; `names` are those of the tools of the request."""
    is_error, content = part.block.get("is_error"), part.block.get("content")
    if is_error and not content:
        raise RequestRefused(f"{part.where}: content cannot be empty if `is_error` is true")
    inner = _parts(part.where, content) if isinstance(content, list) else []
    if any(_has_empty_text(each.block) for each in inner):
        raise RequestRefused(f"{part.where}: text content blocks must be non-empty")
    if is_error and any(each.type != "text" for each in inner):
        raise RequestRefused(f"{part.where}: all content must be of type `text` if `is_error` is true")
    references = [each for each in inner if each.type == "tool_reference"]
    if references and len(references) < len(inner):
        # the words of the API, which name no `tool_reference`
        problem = "Tool definitions/code execution functions cannot be mixed with other content"
        raise RequestRefused(f"{part.where}: {problem}")
    for each in references:
        if (name := each.block["tool_name"]) not in names:
            raise RequestRefused(f"{each.where}: Tool reference {name!r} not found in available tools")


def _has_empty_text(block: Json) -> bool:
    """Return whether a block is an empty text, or a document or search result that has one."""
    if block.get("type") == "text":
        return not block.get("text")
    source = block.get("source")
    inner = source.get("content") if isinstance(source, dict) else block.get("content")
    return any(map(_has_empty_text, blocks_of(inner)))


def _check_calls_are_answered(turns: list[tuple[str, list[_Part]]]) -> None:
    used: set[str] = set()
    calls: dict[str, str] = {}
    for role, parts in turns:
        if role == "user":
            _check_answers(calls, parts)
            calls = {}
            continue
        for part in parts:
            if part.type != "tool_use":
                continue
            if (call_id := part.block["id"]) in used:
                raise RequestRefused(f"{part.where}: `tool_use` ids must be unique: {call_id}")
            used.add(call_id)
            calls[call_id] = part.where
    _check_answers(calls, [])


def _check_answers(calls: dict[str, str], parts: list[_Part]) -> None:
    """Check the blocks of a user turn against the calls of the previous assistant turn."""
    answered: set[str] = set()
    before_results = None
    for part in parts:
        if part.type != "tool_result":
            before_results = before_results or part
            continue
        call_id = part.block["tool_use_id"]
        if call_id not in calls:
            raise RequestRefused(
                f"{part.where}: unexpected `tool_use_id` in a `tool_result` block: {call_id}. Each "
                "`tool_result` must answer a `tool_use` block of the previous assistant message"
            )
        if call_id in answered:
            raise RequestRefused(f"{part.where}: there is more than one `tool_result` block for {call_id}")
        if before_results is not None:
            raise RequestRefused(
                f"{part.where}: `tool_result` blocks must come first in the content; "
                f"a `{before_results.type}` block stands before this one"
            )
        answered.add(call_id)
    if missing := [call_id for call_id in calls if call_id not in answered]:
        raise RequestRefused(
            f"{calls[missing[0]]}: `tool_use` ids without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` must be answered in the next user message"
        )


def _check_tools(conversation: _Conversation) -> None:
    names: set[str] = set()
    for number, tool in enumerate(conversation.tools):
        where = f"tools.{number}"
        if tool.name is not None:
            if tool.name in names:
                raise RequestRefused(f"{where}: tool names must be unique: {tool.name}")
            names.add(tool.name)
        if tool.type in (None, "custom"):
            _check_custom_tool(where, tool)
        if tool.defer_loading and tool.cache_control is not None:
            raise RequestRefused(f"{where}: a tool cannot have both defer_loading and cache_control")
    if conversation.tools and all(tool.defer_loading for tool in conversation.tools):
        raise RequestRefused("tools: at least one tool must not have defer_loading")
    choice = conversation.tool_choice
    if choice is None:
        return
    if not conversation.tools:
        raise RequestRefused("tool_choice: may only be given together with tools")
    if choice.type == "tool" and choice.name not in names:
        raise RequestRefused(f"tool_choice.name: there is no tool {choice.name!r} in tools")


def _check_custom_tool(where: str, tool: _Tool) -> None:
    if tool.name is None:
        raise RequestRefused(f"{where}.name: a tool must have a name")
    schema = tool.input_schema or {}
    if schema.get("type") != "object":
        raise RequestRefused(f'{where}.input_schema.type: the schema must have the type "object"')
    if unsupported := sorted(schema.keys() & {"oneOf", "allOf", "anyOf"}):
        raise RequestRefused(
            f"{where}.input_schema: {', '.join(unsupported)} cannot be used at the top level"
        )


def _check_breakpoints(raw: Json) -> None:
    blocks = blocks_of(raw.get("system")) + blocks_of(raw.get("tools"))
    for message in raw["messages"]:
        blocks += blocks_of(message["content"])
    found = sum(block.get("cache_control") is not None for block in blocks)
    if found > MAX_CACHE_BREAKPOINTS:
        raise RequestRefused(f"at most {MAX_CACHE_BREAKPOINTS} blocks may have cache_control; found {found}")


prepare(_Creation, _Conversation, *SHAPES.values())
