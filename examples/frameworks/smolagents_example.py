"""An agent of smolagents reads line 900 of a long log that never enters its memory."""

from smolagents import Model, Tool, ToolCallingAgent
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction

import fdstore


def read_log() -> str:
    """Return the log of the build."""
    return "".join(f"line {number} of the build\n" for number in range(1, 1001))


tools = fdstore.Toolset(fdstore.connect().process(), enabled=["read_fd", "search_fd"], python=[read_log])


class SmolTool(Tool):
    output_type, skip_forward_signature_validation = "string", True

    def __init__(self, name, description, input_schema):
        self.name, self.description, needed = name, description, input_schema.get("required", ())
        blank = {"type": "any", "description": ""}  # smolagents demands both
        arguments = input_schema["properties"].items()
        self.inputs = {key: {**blank, **each, "nullable": key not in needed} for key, each in arguments}
        super().__init__()

    def forward(self, **arguments):
        return tools.call(self.name, arguments).text


steps = [("read_log", {}), ("read_fd", {"fd": "fd:1#L900"}), ("final_answer", {"answer": "Done."})]


class Scripted(Model):  # a scripted model: use yours here
    def generate(self, messages, **options):
        name, arguments = steps.pop(0)
        call = ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), f"call_{name}", "function")
        return ChatMessage("assistant", tool_calls=[call])


ours = [SmolTool(**each) for each in tools.definitions]
agent = ToolCallingAgent(ours, Scripted(), instructions=tools.instructions, verbosity_level=0)
print(agent.run("What is in line 900?"), *(step.observations for step in agent.memory.steps[1:]), sep="\n")
