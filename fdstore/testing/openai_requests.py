"""What requests to the two APIs of OpenAI share: parts of messages, read as blocks of the Messages API."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fdstore.testing.replies import Json
from fdstore.testing.requests import blocks_of
from fdstore.testing.rules import RequestRefused

ERROR_MARK = "error: "
"""Begins the result of a call that failed, since these APIs have no field for that."""
MAX_ID_CHARS = 64


def content_of(content: object) -> str | list[Json]:
    """Return the content of a message as that of one of the Messages API."""
    return content if isinstance(content, str) else [block_of(part) for part in blocks_of(content)]


def block_of(part: Json) -> Json:
    """Return a part of a message as a block of the Messages API; one of an unknown type as it is."""
    match part:
        case {"type": "text" | "input_text" | "output_text", "text": text}:
            return {"type": "text", "text": text}
        case {"type": "refusal", "refusal": text}:
            return {"type": "text", "text": text}
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return {"type": "image", "source": _source(url)}
        case {"type": "input_image", "image_url": str(url)}:
            return {"type": "image", "source": _source(url)}
        case {"type": "file", "file": {"file_data": str(url)}}:
            return {"type": "document", "source": _source(url)}
        case {"type": "input_file", "file_data": str(url)}:
            return {"type": "document", "source": _source(url)}
    return part


def _source(url: str) -> Json:
    head, comma, data = url.partition(";base64,")
    if not comma:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}


def result_of(call_id: object, content: str | list[Json]) -> Json:
    """Return a `tool_result`. One that begins with the mark of an error is one, without it."""
    first = content if isinstance(content, str) else next((b["text"] for b in content if "text" in b), "")
    block: Json = {"type": "tool_result", "tool_use_id": str(call_id), "content": content}
    if not isinstance(first, str) or not first.startswith(ERROR_MARK):
        return block
    rest = content.removeprefix(ERROR_MARK) if isinstance(content, str) else content
    return {**block, "content": rest, "is_error": True}


def input_of(arguments: object) -> object:
    """Return the arguments of a call, decoded if they are JSON."""
    try:
        return msgspec.json.decode(arguments) if isinstance(arguments, str) else arguments
    except (msgspec.DecodeError, RecursionError):
        return arguments


def check_arguments(where: str, arguments: object) -> None:
    """Raise `RequestRefused` if the arguments of a call are not the JSON of an object: servers fail then."""
    if not isinstance(arguments, str) or not isinstance(input_of(arguments), dict):
        raise RequestRefused(f"{where}.arguments: the arguments of a call must be the JSON of an object")


def check_id(where: str, id: object) -> None:
    if not isinstance(id, str) or not 0 < len(id) <= MAX_ID_CHARS:
        raise RequestRefused(f"{where}: the id of a call must have 1 to {MAX_ID_CHARS} characters")


def check_text(where: str, text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise RequestRefused(f"{where}: content must not be empty")


def check_names(tools: Iterable[Json]) -> None:
    """Raise `RequestRefused` for tools with the same name or without an object as parameters."""
    names: set[object] = set()
    for number, tool in enumerate(tools):
        if (name := tool.get("name")) in names:
            raise RequestRefused(f"tools.{number}: tool names must be unique: {name}")
        names.add(name)
        parameters = tool.get("parameters")
        if not isinstance(parameters, dict) or parameters.get("type") != "object":
            raise RequestRefused(f'tools.{number}.parameters: the schema must have the type "object"')
