"""Requests to Chat Completions: read in the form of the Messages API, and checked by the rules of this one.

Messages of the role `tool` are the results of the message before them, and a message of the user that follows
them directly belongs to the same turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from fdstore.model.msgspec_types import prepare
from fdstore.testing.openai_requests import (
    check_arguments,
    check_id,
    check_names,
    check_text,
    content_of,
    input_of,
    result_of,
)
from fdstore.testing.replies import Json, signature_of
from fdstore.testing.requests import Request, blocks_of, text_of
from fdstore.testing.rules import RequestRefused, ToolName, shaped

SYSTEM = ("system", "developer")


def read_chat(raw: Json, headers: Mapping[str, str]) -> Request:
    """Build a request from its JSON body and HTTP headers."""
    messages = blocks_of(raw.get("messages"))
    system = [text_of(content_of(each.get("content"))) for each in messages if each.get("role") in SYSTEM]
    functions = [tool.get("function") for tool in blocks_of(raw.get("tools"))]
    return Request(
        system="\n".join(system),
        messages=tuple(_turns([each for each in messages if each.get("role") not in SYSTEM])),
        tools=tuple(str(each["name"]) for each in blocks_of(functions) if "name" in each),
        raw=raw,
        headers={name.lower(): value for name, value in headers.items()},
    )


def _turns(messages: list[Json]) -> list[Json]:
    turns: list[Json] = []
    results: list[Json] | None = None
    for message in messages:
        content = content_of(message.get("content"))
        match message.get("role"):
            case "tool":
                if results is None:
                    results = []
                    turns.append({"role": "user", "content": results})
                results.append(result_of(message.get("tool_call_id"), content))
                continue
            case "assistant":
                turns.append({"role": "assistant", "content": _answer(message, content)})
            case _ if results is not None:
                results += content if isinstance(content, list) else [{"type": "text", "text": content}]
            case role:
                turns.append({"role": role, "content": content})
        results = None
    return turns


def _answer(message: Json, content: str | list[Json]) -> list[Json]:
    blocks: list[Json] = []
    if isinstance(thinking := message.get("reasoning_content"), str):
        blocks.append({"type": "thinking", "thinking": thinking})
    blocks += content if isinstance(content, list) else [{"type": "text", "text": content}]
    for call in blocks_of(message.get("tool_calls")):
        function = call.get("function") or {}
        own = {"name": function.get("name"), "input": input_of(function.get("arguments"))}
        blocks.append({"type": "tool_use", "id": call.get("id"), **own})
    return blocks


class _Function(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    arguments: str


class _Call(msgspec.Struct):
    id: str
    type: Literal["function"]
    function: _Function
    extra_content: Json | None = None


class _Message(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Json] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    reasoning_details: list[Json] = []


class _Definition(msgspec.Struct):
    name: ToolName
    parameters: Json
    description: str = ""


class _Tool(msgspec.Struct):
    type: Literal["function"]
    function: _Definition


class _Completion(msgspec.Struct):
    model: Annotated[str, msgspec.Meta(min_length=1)]
    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)]
    tools: Annotated[list[_Tool], msgspec.Meta(min_length=1)] | None = None
    stream: bool | None = None
    stream_options: Json | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None


def check_chat(raw: Json) -> None:
    """Raise `RequestRefused` if `POST /v1/chat/completions` would not accept this body."""
    body = shaped(raw, _Completion)
    if body.max_tokens is not None and body.max_completion_tokens is not None:
        raise RequestRefused("max_tokens: cannot be set together with max_completion_tokens")
    if body.stream_options is not None and not body.stream:
        raise RequestRefused("stream_options: may only be set when stream is true")
    check_names([msgspec.to_builtins(tool.function) for tool in body.tools or ()])
    open_calls: dict[str, str] = {}
    for number, message in enumerate(body.messages):
        where = f"messages.{number}"
        if message.role == "tool":
            _check_result(where, message, open_calls)
            continue
        _check_answered(open_calls)
        _check_message(where, message)
        open_calls = {call.id: where for call in message.tool_calls or ()}
    _check_answered(open_calls)


def _check_answered(calls: dict[str, str]) -> None:
    if calls:
        first = next(iter(calls))
        raise RequestRefused(
            f"{calls[first]}: an assistant message with `tool_calls` must be followed by tool messages that "
            f"respond to each `tool_call_id`; these have none: {', '.join(calls)}"
        )


def _check_result(where: str, message: _Message, calls: dict[str, str]) -> None:
    if message.tool_call_id not in calls:
        raise RequestRefused(
            f"{where}: messages with role `tool` must be a response to a preceding message with "
            f"`tool_calls`: {message.tool_call_id}"
        )
    del calls[message.tool_call_id]
    for part in message.content if isinstance(message.content, list) else ():
        if part.get("type") != "text":
            raise RequestRefused(f"{where}: the content of a tool message must be text")
    check_text(where, text_of(message.content))


def _check_message(where: str, message: _Message) -> None:
    if message.role != "assistant":
        if message.tool_calls:
            raise RequestRefused(f"{where}: `tool_calls` can only be in `assistant` messages")
        parts = message.content if isinstance(message.content, list) else [{"text": message.content}]
        if not parts:
            raise RequestRefused(f"{where}: content must not be empty")
        for part in parts:
            if part.get("type", "text") == "text":
                check_text(where, part.get("text"))
        return
    if message.tool_calls is None:
        check_text(where, text_of(message.content))
    elif not message.tool_calls:
        raise RequestRefused(f"{where}.tool_calls: must not be empty")
    ids = [call.id for call in message.tool_calls or ()]
    if len(set(ids)) < len(ids):
        raise RequestRefused(f"{where}.tool_calls: ids must be unique")
    for call in message.tool_calls or ():
        check_id(f"{where}.tool_calls", call.id)
        check_arguments(f"{where}.tool_calls", call.function.arguments)
    for detail in message.reasoning_details:
        signature, text = str(detail.get("signature")), str(detail.get("text"))
        if signature.startswith("scripted-") and signature != signature_of(text):
            raise RequestRefused(f"{where}.reasoning_details: must be sent back as they were received")


prepare(_Completion)
