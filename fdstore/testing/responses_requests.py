"""Requests to the Responses API: read in the form of the Messages API, and checked by the rules of this one.

Items between two of the user are one answer, and outputs of calls with the messages after them one turn of
the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

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

ENCRYPTED = "reasoning.encrypted_content"


def read_responses(raw: Json, headers: Mapping[str, str]) -> Request:
    """Build a request from its JSON body and HTTP headers."""
    given = raw.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else blocks_of(given)
    tools = [str(tool["name"]) for tool in blocks_of(raw.get("tools")) if "name" in tool]
    return Request(
        system=text_of(raw.get("instructions")),
        messages=tuple(_turns(items)),
        tools=tuple(tools),
        raw=raw,
        headers={name.lower(): value for name, value in headers.items()},
    )


def _turns(items: list[Json]) -> list[Json]:
    turns: list[Json] = []
    for item in items:
        role, content = _content(item)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] = [*_blocks(turns[-1]["content"]), *_blocks(content)]
        else:
            turns.append({"role": role, "content": content})
    return turns


def _blocks(content: str | list[Json]) -> list[Json]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _content(item: Json) -> tuple[str, str | list[Json]]:
    """Return the role of an item, and its content as that of a message."""
    match item.get("type", "message"):
        case "message":
            return str(item.get("role")), content_of(item.get("content"))
        case "function_call_output":
            return "user", [result_of(item.get("call_id"), content_of(item.get("output")))]
        case "function_call":
            own = {"name": item.get("name"), "input": input_of(item.get("arguments"))}
            return "assistant", [{"type": "tool_use", "id": item.get("call_id"), **own}]
        case "reasoning":
            shown = text_of([{**part, "type": "text"} for part in blocks_of(item.get("summary"))])
            return "assistant", [{"type": "thinking", "thinking": shown}]
    return "assistant", [item]


class _Tool(msgspec.Struct):
    type: Literal["function"]
    name: ToolName
    parameters: Json
    description: str = ""
    strict: bool | None = None


class _Creation(msgspec.Struct):
    model: Annotated[str, msgspec.Meta(min_length=1)]
    input: str | list[Json]
    instructions: str | None = None
    tools: list[_Tool] = []
    store: bool = True
    include: list[str] = []
    stream: bool | None = None
    max_output_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    previous_response_id: str | None = None


class _Message(msgspec.Struct):
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[Json]


class _Call(msgspec.Struct):
    call_id: str
    name: Annotated[str, msgspec.Meta(min_length=1)]
    arguments: str


class _Output(msgspec.Struct):
    call_id: str
    output: str | list[Json]


class _Reasoning(msgspec.Struct):
    id: str
    summary: list[Json]
    encrypted_content: str | None = None
    content: list[Json] | None = None


SHAPES: dict[str, Any] = {
    "message": _Message,
    "function_call": _Call,
    "function_call_output": _Output,
    "reasoning": _Reasoning,
}
"""The types of items whose fields are validated; those of hosted tools are accepted unchecked."""


def check_responses(raw: Json) -> None:
    """Raise `RequestRefused` if `POST /v1/responses` would not accept this body, or if it needs what a
    scripted model does not store."""
    body = shaped(raw, _Creation)
    if body.previous_response_id is not None:
        raise RequestRefused("previous_response_id: the scripted model stores no responses")
    for number, tool in enumerate(body.tools):
        if tool.strict is not False and tool.parameters.get("additionalProperties") is not False:
            raise RequestRefused(f"tools.{number}: a strict tool needs `additionalProperties: false`")
    check_names([msgspec.to_builtins(tool) for tool in body.tools])
    if not isinstance(body.input, list):
        check_text("input", body.input)
        return
    if not body.input:
        raise RequestRefused("input: must not be empty")
    open_calls: dict[str, str] = {}
    used: set[str] = set()
    reasoning = ""
    for number, item in enumerate(body.input):
        where, kind = f"input.{number}", str(item.get("type", "message"))
        if (shape := SHAPES.get(kind)) is not None:
            shaped(item, shape, where)
        is_of_user = kind == "function_call_output" or item.get("role") in ("user", "system", "developer")
        if reasoning and is_of_user:
            break
        reasoning = where if kind == "reasoning" else ""
        _check_item(where, kind, item, open_calls, used)
    if reasoning:
        raise RequestRefused(f"{reasoning}: a `reasoning` item was provided without the item that follows it")
    if open_calls:
        call_id, where = next(iter(open_calls.items()))
        raise RequestRefused(f"{where}: no tool output found for function call {call_id}")


def _check_item(where: str, kind: str, item: Json, calls: dict[str, str], used: set[str]) -> None:
    match kind:
        case "message":
            if item["role"] == "user" and calls:
                call_id = next(iter(calls))
                raise RequestRefused(f"{calls[call_id]}: no tool output found for function call {call_id}")
            _check_parts(where, item["content"], is_answer=item["role"] == "assistant")
        case "function_call":
            check_id(where, item["call_id"])
            check_arguments(where, item["arguments"])
            if item["call_id"] in used:
                raise RequestRefused(f"{where}: call ids must be unique: {item['call_id']}")
            used.add(item["call_id"])
            calls[item["call_id"]] = where
        case "function_call_output":
            if calls.pop(item["call_id"], None) is None:
                raise RequestRefused(
                    f"{where}: no tool call found for function call output {item['call_id']}"
                )
            _check_parts(where, item["output"], is_answer=False)
        case "reasoning":
            _check_reasoning(where, item)


def _check_parts(where: str, content: str | list[Json], *, is_answer: bool) -> None:
    if isinstance(content, str):
        check_text(where, content)
        return
    if not content:
        raise RequestRefused(f"{where}: content must not be empty")
    known = ("output_text", "refusal") if is_answer else ("input_text", "input_image", "input_file")
    for part in content:
        if part.get("type") not in known:
            raise RequestRefused(
                f"{where}: a part of type {part.get('type')} cannot be here: {', '.join(known)}"
            )
        if part["type"] in ("input_text", "output_text"):
            check_text(where, part.get("text"))


def _check_reasoning(where: str, item: Json) -> None:
    encrypted = item.get("encrypted_content")
    if not encrypted and not item.get("content"):
        raise RequestRefused(f"{where}: the item {item['id']} is not stored, and has no encrypted content")
    summary = "".join(str(part.get("text")) for part in item["summary"])
    if (
        isinstance(encrypted, str)
        and encrypted.startswith("scripted-")
        and encrypted != signature_of(summary)
    ):
        raise RequestRefused(f"{where}: a `reasoning` item must be sent back as it was received")


prepare(_Creation, *SHAPES.values())
