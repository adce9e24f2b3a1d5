"""An agent of Google's ADK reads line 900 of a long log that never enters its session."""

import asyncio

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

import fdstore
from fdstore.integrations.google_adk import FdstorePlugin

turns = [types.Part.from_function_call(name="read_log", args={})]
turns += [types.Part.from_function_call(name="read_fd", args={"fd": "fd:1#L900"}), types.Part(text="Done.")]


class Model(BaseLlm):  # a scripted model: use yours here
    async def generate_content_async(self, request, stream=False):
        yield LlmResponse(content=types.Content(role="model", parts=[turns.pop(0)]))


def read_log() -> str:
    """Return the log of the build."""
    return "".join(f"line {number} of the build\n" for number in range(1, 1001))


agent = LlmAgent(name="triage", model=Model(model="scripted"), tools=[read_log])
runner = InMemoryRunner(agent=agent, plugins=[FdstorePlugin(fdstore.connect())])
for event in asyncio.run(runner.run_debug("What is in line 900?", quiet=True)):
    for response in event.get_function_responses():
        print(response.response["result"])
