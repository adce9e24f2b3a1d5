"""Test agents without a model: a scripted one on loopback, which speaks the Messages API and those of OpenAI.

An agent is best tested as a whole: its loop, its tools, its retries and the SDK, everything but the model.
`ScriptedModel` replaces the model behind `base_url`: it returns the answers of a script and records the
requests. It refuses what the real API refuses, so a loop that omits a tool result fails here and not in
production. One script plays for the Messages API, for Chat Completions and for the Responses API.

A complete test of an agent:

    import anthropic
    from fdstore.testing import ScriptedModel, call, say

    @anthropic.beta_tool
    def weather(city: str) -> str:
        "The weather in a city."
        return f"Rain in {city}."

    def test_the_agent_looks_the_weather_up():
        script = [call("weather", city="Oslo"), say("Take an umbrella.")]

        with (
            ScriptedModel(script) as model,
            anthropic.Anthropic(base_url=model.base_url, api_key=model.api_key) as client,
        ):
            question = [{"role": "user", "content": "Do I need an umbrella in Oslo?"}]
            agent = client.beta.messages.tool_runner(
                model="any", max_tokens=1000, messages=question, tools=[weather]
            )
            answer = agent.until_done()

        assert answer.content[0].text == "Take an umbrella."
        assert model.requests[1].tool_results()[0].text == "Rain in Oslo."

Whole programs, with all that they spawn, run by the fixture `fdstore_agent` of `pytest_plugin`, which every
pytest finds where fdstore is installed.

`replies` has the answers, `Request` what a script can read of a request, `element` what it can read of a
result, `rules` what is refused. Agents in other processes find the model through `model.environ`;
`python -m fdstore.testing SCRIPT.py -- COMMAND` runs any command with it.

Requires only the standard library and msgspec; the SDK belongs to the agent.
"""

from fdstore.testing.dialects import Quirk
from fdstore.testing.elements import Element, element, elements
from fdstore.testing.replies import (
    Cut,
    Fail,
    Held,
    Reply,
    Slow,
    Turn,
    Usage,
    call,
    cut,
    fail,
    garbled,
    held,
    say,
    signed,
    slow,
    think,
    turn,
)
from fdstore.testing.requests import Request, ToolResult
from fdstore.testing.script import Replies, Script
from fdstore.testing.server import ScriptedModel

__all__ = [
    "Cut",
    "Element",
    "Fail",
    "Held",
    "Quirk",
    "Replies",
    "Reply",
    "Request",
    "Script",
    "ScriptedModel",
    "Slow",
    "ToolResult",
    "Turn",
    "Usage",
    "call",
    "cut",
    "element",
    "elements",
    "fail",
    "garbled",
    "held",
    "say",
    "signed",
    "slow",
    "think",
    "turn",
]
