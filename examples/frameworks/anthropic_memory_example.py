"""An agent writes into the memory of a team, and a later one reads it there, on any machine."""

import anthropic

import fdstore
from fdstore.integrations.anthropic_memory import MemoryTool
from fdstore.testing import ScriptedModel, call, say

script = [  # a scripted model: use yours here
    call("memory", command="create", path="/memories/plan.md", file_text="Ship it.\n"),
    say("I noted the plan."),
]
memory = MemoryTool(fdstore.connect().process("team-memory"))
with ScriptedModel(script) as model:
    client = anthropic.Anthropic(base_url=model.base_url, api_key=model.api_key)
    question = [{"role": "user", "content": "Remember the plan: ship it."}]
    agent = client.beta.messages.tool_runner(
        model="claude-sonnet-5-5", max_tokens=1000, messages=question, tools=[memory]
    )
    print(agent.until_done().content[0].text)
print(memory.call({"command": "view", "path": "/memories/plan.md"}))
