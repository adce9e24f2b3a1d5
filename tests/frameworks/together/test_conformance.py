"""The adapters of this environment hold what the conformance set says, and their examples run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fdstore.client import Store
from tests.frameworks.conformance.agent_framework import AgentFramework
from tests.frameworks.conformance.agno import Agno
from tests.frameworks.conformance.anthropic_runner import AnthropicRunner
from tests.frameworks.conformance.claude_agent_sdk import ClaudeAgentSDK
from tests.frameworks.conformance.google_adk import GoogleADK
from tests.frameworks.conformance.haystack import Haystack
from tests.frameworks.conformance.langchain import LangChain
from tests.frameworks.conformance.openai_agents import OpenAIAgents
from tests.frameworks.conformance.pydantic_ai import PydanticAI
from tests.frameworks.conformance.strands import Strands
from tests.frameworks.conformance.testing import conformance_test, docstrings_test, examples_test

DRIVERS = (
    AgentFramework, Agno, AnthropicRunner, ClaudeAgentSDK, GoogleADK, Haystack, LangChain, OpenAIAgents,
    PydanticAI, Strands,
)  # fmt: skip

test_an_adapter_holds = conformance_test(*DRIVERS)

ADAPTERS = (
    "agent_framework", "agno", "anthropic_memory", "anthropic_runner", "claude_agent_sdk", "deepagents",
    "google_adk", "haystack", "langchain", "openai_agents", "pydantic_ai", "strands",
)  # fmt: skip
RECIPES = ("dspy", "smolagents")

test_an_example_runs = examples_test(*ADAPTERS, *RECIPES)
test_the_examples_of_docstrings_run = docstrings_test(*ADAPTERS)


@pytest.mark.parametrize("name", RECIPES)
def test_the_program_of_a_recipe_stores_the_result_exactly(
    name: str, run_example: Callable[[str], str], store: Store
) -> None:
    assert "Done." in run_example(name)

    [tree] = store.trees()
    stored = store.process(tree.id).read("fd:1", read_all=True).text
    assert stored == "".join(f"line {number} of the build\n" for number in range(1, 1001))
