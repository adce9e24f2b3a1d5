"""An agent of Microsoft Agent Framework reads line 900 of a long log that never enters its messages."""

import asyncio

import agent_framework as af

import fdstore
from fdstore.integrations.agent_framework import FdstoreProvider

turns = [af.Content.from_function_call("call_1", "read_log", arguments={})]
turns += [af.Content.from_function_call("call_2", "read_fd", arguments={"fd": "fd:1#L900"}), "Done."]


class Client(af.FunctionInvocationLayer, af.ChatMiddlewareLayer, af.BaseChatClient):
    async def _inner_get_response(self, *, messages, **options):  # a scripted model: use your client here
        return af.ChatResponse(messages=[af.Message("assistant", [turns.pop(0)])])


def read_log() -> str:
    """Return the log of the build."""
    return "".join(f"line {number} of the build\n" for number in range(1, 1001))


agent = af.Agent(Client(), tools=[read_log], context_providers=[FdstoreProvider(fdstore.connect())])
for message in asyncio.run(agent.run("What is in line 900?")).messages:
    print(*(content.result or content.text for content in message.contents), sep="\n")
