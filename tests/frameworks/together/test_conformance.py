"""The adapters of this environment hold what the conformance set says."""

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
from tests.frameworks.conformance.testing import conformance_test

DRIVERS = (
    AgentFramework, Agno, AnthropicRunner, ClaudeAgentSDK, GoogleADK, Haystack, LangChain, OpenAIAgents,
    PydanticAI, Strands,
)  # fmt: skip

test_an_adapter_holds = conformance_test(*DRIVERS)
