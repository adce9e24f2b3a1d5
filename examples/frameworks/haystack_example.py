"""An agent of Haystack reads line 900 of a long log that never enters its messages."""

from haystack.components.agents import Agent
from haystack.components.generators.chat import MockChatGenerator
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import tool

import fdstore
from fdstore.integrations.haystack import FdstoreHook


@tool
def read_log() -> str:
    """Return the log of the build."""
    return "".join(f"line {number} of the build\n" for number in range(1, 1001))


calls = [ToolCall("read_log", {}), ToolCall("read_fd", {"fd": "fd:1#L900"})]
turns = [ChatMessage.from_assistant(tool_calls=[call]) for call in calls]
model = MockChatGenerator([*turns, ChatMessage.from_assistant("Done.")])  # a mock: use your model here
hook = FdstoreHook(fdstore.connect())
hooks = {"before_run": [hook], "after_tool": [hook]}
agent = Agent(
    chat_generator=model, tools=[read_log, *hook.tools], system_prompt=hook.instructions, hooks=hooks
)
for message in agent.run(messages=[ChatMessage.from_user("What is in line 900?")])["messages"]:
    print(message.tool_call_result.result if message.tool_call_result else message.text)
