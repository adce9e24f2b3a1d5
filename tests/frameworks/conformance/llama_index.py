"""Agents of LlamaIndex."""

from __future__ import annotations

from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from pydantic import PrivateAttr

from fdstore.client import Store
from fdstore.integrations.llama_index import FdstoreTools
from tests.frameworks.conformance.driver import Driver, Function, Ran, Turn, awaited


class Scripted(MockFunctionCallingLLM):
    """Answers from a script, and keeps the messages of each request."""

    _requests: list[list[ChatMessage]] = PrivateAttr(default_factory=list)

    @property
    def requests(self) -> list[list[ChatMessage]]:
        return self._requests


def scripted(*turns: ToolCallBlock | list[ToolCallBlock], last: str = "Done.") -> Scripted:
    left = [turn if isinstance(turn, list) else [turn] for turn in turns]

    def answer(messages: Any, **more: Any) -> ChatMessage:
        model.requests.append(list(messages))
        if left:
            return ChatMessage(role="assistant", blocks=left.pop(0))
        return ChatMessage(role="assistant", content=last)

    model = Scripted(response_generator=answer)
    return model


class LlamaIndex(Driver):
    name = "LlamaIndex"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.kept: Any = None

    def adapter(self, store: Store) -> FdstoreTools:
        return FdstoreTools(store, **self.options)

    async def run(self, *turns: Turn, prompt: str = "Go.", streamed: bool = False) -> Ran:
        script = [
            [
                ToolCallBlock(tool_name=call.name, tool_kwargs=dict(call.arguments), tool_call_id=call_id)
                for call_id, call in calls
            ]
            for calls in self.numbered(turns)
        ]
        model = scripted(*script)
        ours = self.ours
        agent = FunctionAgent(
            tools=ours.wrap([_tool(each) for each in self.functions]),
            llm=model,
            system_prompt=ours.instructions,
            name="triage",
            streaming=streamed,
        )
        context = Context.from_dict(agent, self.kept) if self.kept else Context(agent)
        running = agent.run(prompt, ctx=context)
        async for _ in running.stream_events():
            pass
        ended = await running
        self.kept = context.to_dict()
        shown = [message for message in model.requests[-1] if message.role == "tool"]
        shown.sort(key=_number)  # results of parallel calls come in any order
        return Ran(
            results=[str(message.content) for message in shown],
            failed=[each.tool_output.is_error for each in ended.tool_calls if hasattr(each, "tool_output")],
            images=sum(isinstance(block, ImageBlock) for message in shown for block in message.blocks),
            seen=str(model.requests),
            system=str(model.requests[0][0].content),
            answer=str(ended),
        )


def _number(message: ChatMessage) -> int:
    """Return the number of the call that a message has the result of."""
    return int(message.additional_kwargs["tool_call_id"].removeprefix("call_"))


def _tool(function: Function) -> FunctionTool:
    run = awaited(function)

    async def called() -> Any:
        result = await run()
        return [_block(each) for each in result] if isinstance(result, list) else result

    return FunctionTool.from_defaults(
        async_fn=called, name=function.name, description="A tool.", return_direct=function.is_direct
    )


def _block(block: str | bytes) -> Any:
    return TextBlock(text=block) if isinstance(block, str) else ImageBlock(image=block)
