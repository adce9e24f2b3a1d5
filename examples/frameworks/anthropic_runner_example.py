"""The tool runner of the anthropic SDK: line 900 of a long log that never enters the messages."""

import anthropic

import fdstore
from fdstore.integrations.anthropic_runner import FdstoreRunner
from fdstore.testing import ScriptedModel, call, say


@anthropic.beta_tool
def read_log() -> str:
    """Return the log of the build."""
    return "".join(f"line {number} of the build\n" for number in range(1, 1001))


script = [call("read_log"), call("read_fd", fd="fd:1#L900"), say("Done.")]
ours = FdstoreRunner(fdstore.connect(), "chat-7")
with ScriptedModel(script) as model:  # a scripted model: use yours here
    client = anthropic.Anthropic(base_url=model.base_url, api_key=model.api_key)
    messages = ours.messages([{"role": "user", "content": "What is in line 900?"}])
    runner = client.beta.messages.tool_runner(
        model="any", max_tokens=99, system=ours.instructions, tools=ours.wrap([read_log]), messages=messages
    )
    for _ in runner:
        print(runner.generate_tool_call_response())
