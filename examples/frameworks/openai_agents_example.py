"""An agent of the OpenAI Agents SDK reads line 900 of a long log that never enters its messages."""

from agents import Agent, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

import fdstore
from fdstore.integrations.openai_agents import FdstoreTools


@function_tool
def read_log() -> str:
    """Return the log of the build."""
    return "".join(f"line {number} of the build\n" for number in range(1, 1001))


asks = [("read_log", "{}"), ("read_fd", '{"fd": "fd:1#L900"}')]
turns = [[function_call(name, arguments, call_id=f"call_{name}")] for name, arguments in asks]
model = ScriptedModel([*turns, [assistant_message("Done.")]])  # a scripted model: use yours here
ours = FdstoreTools(fdstore.connect())
agent = Agent("triage", instructions=ours.instructions, tools=ours.wrap([read_log]), model=model)
result = Runner.run_sync(agent, "What is in line 900?", run_config=ours.run_config("chat-7"))
for item in result.to_input_list():
    print(item.get("output", item.get("content")))
