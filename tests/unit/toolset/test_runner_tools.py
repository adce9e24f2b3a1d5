"""The tools as the SDK's tool runner takes them. Whole runs are in connections/test_foreign_loops.py."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest
from anthropic.lib.tools import ToolError

from fdstore import FDConfig, Toolset
from fdstore.client import Store
from fdstore.errors import InvalidArgument
from fdstore.testing import ScriptedModel, say
from tests.unit.test_imports import libraries_loaded_by


def repeat(text: str) -> str:
    """Repeat a text 30 times."""
    return text * 30


@pytest.fixture
def tools(store: Store) -> Toolset:
    config = FDConfig(max_direct_output_chars=20)
    return Toolset(store.process("triage"), enabled=["read_fd"], python=[repeat], config=config)


def test_a_runnable_has_the_definition_and_the_result_of_its_tool(tools: Toolset) -> None:
    read, users = tools.runnable()

    assert [read.to_dict(), users.to_dict()] == tools.definitions
    assert users.call({"text": "x"}).startswith('<fd_result fd="fd:1"')
    assert "\nxxx" in read.call({"fd": "fd:1"})


@pytest.mark.parametrize("arguments", [{}, {"text": 1}, {"text": "a", "x": 1}, None, "text", []], ids=repr)
def test_a_mistake_of_the_model_is_a_tool_error(tools: Toolset, arguments: Any) -> None:
    [_, users] = tools.runnable()

    with pytest.raises(ToolError, match="invalid_argument"):
        users.call(arguments)


@pytest.mark.parametrize("client", ["openai", "", None])
def test_an_unknown_client_is_refused_with_the_known_one(tools: Toolset, client: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"client: .*there are: anthropic"):
        tools.runnable(client)


def test_the_runner_of_the_other_colour_refuses_the_tools(tools: Toolset) -> None:
    with (
        ScriptedModel([say("never asked")]) as model,
        pytest.raises(TypeError, match="synchronous tool"),
    ):
        anthropic.AsyncAnthropic(base_url=model.base_url, api_key=model.api_key).beta.messages.tool_runner(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi"}], tools=tools.runnable()
        )


def test_a_toolset_does_not_import_the_sdk() -> None:
    assert "anthropic" not in libraries_loaded_by("import fdstore; fdstore.Toolset", "anthropic", "pydantic")
