"""Functions of the SDK's tool runner as tools."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import pytest
from anthropic.lib.tools import ToolError

from fdstore.errors import InvalidArgument
from fdstore.tools.functions.python_tool import call_function, python_tool, tool
from tests.unit.tools.functions.ticket import Ticket, properties


@tool(repeatable=False)
@anthropic.beta_tool
def lookup(ticket: Ticket, limit: int = 3) -> str:
    """Look a ticket up.

    Args:
        ticket: Which.
    """
    if limit == 0:
        raise ToolError([{"type": "text", "text": "no"}, {"type": "text", "text": "luck"}])
    if limit < 0:
        raise ValueError("below zero")
    return f"{type(ticket).__name__} {ticket.title} {limit}"


@anthropic.beta_async_tool(name="look-up", description="Looks.", input_schema={"type": "object"})
async def lookup_async(**anything: Any) -> str:
    return json.dumps(anything)


def test_a_function_of_the_sdk_keeps_its_definition() -> None:
    assert python_tool(lookup).definition() == lookup.to_dict()
    assert python_tool(lookup_async).definition() == lookup_async.to_dict()
    assert properties(lookup)["ticket"]["description"] == "Which."


@pytest.mark.parametrize(
    ("arguments", "output", "is_error"),
    [
        ({"ticket": {"title": "t"}}, "Ticket t 3", False),
        (
            {"ticket": {"title": "t"}, "limit": 0},
            [{"type": "text", "text": "no"}, {"type": "text", "text": "luck"}],
            True,
        ),
        ({"ticket": {"title": "t"}, "limit": -1}, "ValueError: below zero", True),
    ],
)
def test_a_function_of_the_sdk_runs_with_its_types(
    arguments: dict[str, Any], output: object, is_error: bool
) -> None:
    made = python_tool(lookup)

    assert call_function(made, made.convert(arguments)) == (output, is_error)


@pytest.mark.parametrize(
    ("arguments", "where"),
    [({}, "ticket"), ({"ticket": {"title": 1}}, "ticket.title"), ({"ticket": {"title": "t"}, "x": 1}, "x")],
)
def test_arguments_that_the_sdk_refuses_are_named(arguments: dict[str, Any], where: str) -> None:
    made = python_tool(lookup)

    error, is_error = call_function(made, made.convert(arguments))

    assert isinstance(error, InvalidArgument)
    assert (error.argument, is_error) == (where, True)


@pytest.mark.parametrize("arguments", [None, [], "x", {1: 2}, {"a": float("nan")}], ids=repr)
def test_only_a_json_object_reaches_a_function_of_the_sdk(arguments: Any) -> None:
    with pytest.raises(InvalidArgument):
        python_tool(lookup_async).convert(arguments)


def test_an_async_function_of_the_sdk_runs_to_its_end() -> None:
    made = python_tool(lookup_async)

    assert call_function(made, made.convert({"a": [1]})) == ('{"a": [1]}', False)
    assert (python_tool(lookup).repeatable, made.repeatable) == (False, True)
