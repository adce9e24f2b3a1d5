"""Claude Code, run by its SDK: line 900 of a long output that never enters its context."""

import asyncio

from claude_agent_sdk import ClaudeAgentOptions, UserMessage, query

import fdstore
from fdstore.integrations.claude_agent_sdk import FdstoreHooks
from fdstore.testing import ScriptedModel, call, say

asks = [call("Bash", command="seq 1 50000"), call("mcp__fdstore__read_fd", fd="fd:1#L900"), say("Done.")]


def script(request):
    return asks[request.turn_number] if "Bash" in request.tools else say("a title")


async def main(model):
    ours = FdstoreHooks(await fdstore.aio.connect(), "chat-7")
    options = ours.options(ClaudeAgentOptions(allowed_tools=["Bash"], env=model.environ))
    async for message in query(prompt="What is in line 900?", options=options):
        if isinstance(message, UserMessage):
            print(message.content)


with ScriptedModel(script) as model:  # a scripted model: leave out `env` for yours
    asyncio.run(main(model))
