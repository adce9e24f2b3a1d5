"""Tool definitions in the shapes of other APIs than the Messages API.

No shape asks for strict mode, which would refuse optional arguments. OpenAI's Responses API is strict unless
the definition says otherwise; its Chat Completions API is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from fdstore.errors import InvalidArgument, quoted

Definition: TypeAlias = dict[str, Any]
DefinitionShape: TypeAlias = Literal["anthropic", "openai", "openai-responses", "mcp"]


def _openai(tool: Definition) -> Definition:
    function = {
        "name": tool["name"],
        "description": tool["description"],
        "parameters": tool["input_schema"],
    }
    return {"type": "function", "function": function}


def _openai_responses(tool: Definition) -> Definition:
    return {"type": "function", **_openai(tool)["function"], "strict": False}


def _mcp(tool: Definition) -> Definition:
    return {
        "name": tool["name"],
        "description": tool["description"],
        "inputSchema": tool["input_schema"],
    }


SHAPES: dict[str, Callable[[Definition], Definition]] = {
    "anthropic": dict,
    "openai": _openai,
    "openai-responses": _openai_responses,
    "mcp": _mcp,
}


def in_shape(definitions: Sequence[Definition], shape: str) -> list[Definition]:
    """Return Messages API tool dicts in another shape. Raises `InvalidArgument` for an unknown shape.

    >>> in_shape([{"name": "now", "description": "The time.", "input_schema": {"type": "object"}}], "mcp")
    [{'name': 'now', 'description': 'The time.', 'inputSchema': {'type': 'object'}}]
    """
    if not isinstance(shape, str) or shape not in SHAPES:
        raise InvalidArgument("shape", f"there is no shape {quoted(shape)}; there are: {', '.join(SHAPES)}")
    return [SHAPES[shape](definition) for definition in definitions]
