"""A Strands agent reads line 900 of a long log that never enters its messages."""

from strands import Agent, tool
from strands.models import Model

import fdstore
from fdstore.integrations.strands import FdstorePlugin

turns = [("read_log", "{}"), ("read_fd", '{"fd": "fd:1#L900"}'), None]


class Scripted(Model):  # use a real model here
    update_config = get_config = structured_output = lambda self, *arguments, **options: {}

    async def stream(self, *arguments, **options):
        name, given = turns.pop(0) or (None, "Done.")
        start = {"toolUse": {"name": name, "toolUseId": f"call_{name}"}} if name else {}
        yield {"contentBlockStart": {"start": start}}
        yield {"contentBlockDelta": {"delta": {"toolUse": {"input": given}} if name else {"text": given}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if name else "end_turn"}}


log = tool(
    lambda: "".join(f"line {n} of the build\n" for n in range(1, 1001)), name="read_log", description="log"
)
agent = Agent(Scripted(), tools=[log], plugins=[FdstorePlugin(fdstore.connect())])
agent("What is in line 900?")
print(agent.messages)
