"""An agent of Pydantic AI reads line 900 of a long log that never enters its history."""

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

import fdstore
from fdstore.integrations.pydantic_ai import FdstoreCapability

turns = [ToolCallPart("read_log", {}), ToolCallPart("read_fd", {"fd": "fd:1#L900"}), TextPart("Done.")]
model = FunctionModel(lambda messages, info: ModelResponse([turns.pop(0)]))  # use yours here
agent = Agent(model, capabilities=[FdstoreCapability(fdstore.connect())])


@agent.tool_plain
def read_log() -> str:
    """Return the log of the build."""
    return "".join(f"line {number} of the build\n" for number in range(1, 1001))


for message in agent.run_sync("What is in line 900?").all_messages():
    print(*[part.content for part in message.parts if hasattr(part, "content")])
