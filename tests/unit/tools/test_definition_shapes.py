"""The same tools in the shapes of several APIs."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from fdstore import Toolset
from fdstore.client import Store
from fdstore.errors import InvalidArgument
from fdstore.tools.definition_shapes import SHAPES, DefinitionShape, in_shape


def double(n: int) -> str:
    """Twice n."""
    return str(2 * n)


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


FUNCTION = {"name": "double", "description": "Twice n.", "parameters": SCHEMA}


@pytest.mark.parametrize(
    ("shape", "definition"),
    [
        ("anthropic", {"name": "double", "description": "Twice n.", "input_schema": SCHEMA}),
        ("openai", {"type": "function", "function": FUNCTION}),
        ("openai-responses", {"type": "function", "strict": False, **FUNCTION}),
        ("mcp", {"name": "double", "description": "Twice n.", "inputSchema": SCHEMA}),
    ],
)
def test_a_tool_has_the_keys_of_each_shape(store: Store, shape: DefinitionShape, definition: Any) -> None:
    tools = Toolset(store.process("triage"), enabled=["read_fd"], python=[double])

    ours, users = tools.definitions_for(shape)

    assert users == definition
    assert ours.keys() == users.keys()


def test_only_the_messages_api_gets_its_own_keys() -> None:
    tool = {
        "name": "f",
        "description": "F.",
        "input_schema": SCHEMA,
        "cache_control": {"type": "ephemeral"},
        "strict": True,
    }

    assert in_shape([tool], "anthropic") == [tool]
    for shape in SHAPES.keys() - {"anthropic"}:
        assert "cache_control" not in str(in_shape([tool], shape))
        assert "True" not in str(in_shape([tool], shape)).replace("'additionalProperties': True", "")


@pytest.mark.parametrize("shape", ["gemini", "", "OpenAI", None, ["mcp"]])
def test_an_unknown_shape_is_refused_with_the_known_ones(store: Store, shape: Any) -> None:
    tools = Toolset(store.process("triage"))

    with pytest.raises(InvalidArgument, match="there are: anthropic, openai, openai-responses, mcp"):
        tools.definitions_for(shape)


def test_the_shapes_known_to_a_type_checker_are_all() -> None:
    assert get_args(DefinitionShape) == tuple(SHAPES)
