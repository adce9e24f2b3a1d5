"""An agent of Agno reads line 900 of a long log that never enters its messages."""

from agno.agent import Agent
from agno.models.anthropic import Claude

import fdstore
from fdstore.integrations.agno import FdstoreTools
from fdstore.testing import ScriptedModel, call, say


def read_log() -> str:
    """Return the log of the build."""
    return "".join(f"line {number} of the build\n" for number in range(1, 1001))


script = [call("read_log"), call("read_fd", fd="fd:1#L900"), say("Done.")]
ours = FdstoreTools(fdstore.connect())
with ScriptedModel(script) as model:  # a scripted model: use yours here
    agent = Agent(
        model=Claude("any", api_key=model.api_key, client_params={"base_url": model.base_url}),
        tools=[read_log, ours],
        tool_hooks=[ours.store_result],
        pre_hooks=[ours.store_input],
        telemetry=False,
    )
    ended = agent.run("What is in line 900?", session_id="chat-7")
print(*(call.result for call in ended.tools or []), ended.content, sep="\n")
