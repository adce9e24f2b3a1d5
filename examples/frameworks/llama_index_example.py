"""An agent of LlamaIndex reads line 900 of a long log that never enters its messages."""

import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM

import fdstore
from fdstore.integrations.llama_index import FdstoreTools


def read_log() -> str:
    """Return the log of the build."""
    return "".join(f"line {number} of the build\n" for number in range(1, 1001))


asks = [("read_log", {}), ("read_fd", {"fd": "fd:1#L900"})]
said = [ChatMessage(role="assistant", blocks=[ToolCallBlock(tool_name=n, tool_kwargs=k)]) for n, k in asks]
said.append(ChatMessage(role="assistant", content="Done."))
model = MockFunctionCallingLLM(response_generator=lambda *_, **__: said.pop(0))  # use your model here
ours = FdstoreTools(fdstore.connect())
agent = FunctionAgent(tools=ours.wrap([read_log]), llm=model, system_prompt=ours.instructions)


async def main() -> None:
    ended = await agent.run("What is in line 900?")
    print(*(call.tool_output for call in ended.tool_calls), ended, sep="\n")


asyncio.run(main())
