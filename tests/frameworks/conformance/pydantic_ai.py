"""Agents of Pydantic AI."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from fdstore.client import Store
from fdstore.integrations.pydantic_ai import FdstoreCapability
from tests.frameworks.conformance.driver import Call, Driver, Function, Ran, Request, Turn, awaited


class PydanticAI(Driver):
    name = "Pydantic AI"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.history = b"[]"

    def adapter(self, store: Store) -> FdstoreCapability:
        return FdstoreCapability(store, **self.options)

    async def run(self, *turns: Turn, prompt: str = "Go.", streamed: bool = False) -> Ran:
        return await self._go_on(self.ours, prompt, turns, streamed=streamed)

    async def approve(self, store: Store, *turns: Turn) -> Ran:
        return await self._go_on(self.adapter(store), None, turns)

    async def _go_on(
        self, ours: FdstoreCapability, prompt: str | None, turns: Sequence[Turn], *, streamed: bool = False
    ) -> Ran:
        model = _Scripted(self.numbered(turns))
        agent: Agent[None, Any] = Agent(
            FunctionModel(model.answer, stream_function=model.stream),
            capabilities=[ours],
            tools=[_tool(each) for each in self.functions],
            output_type=[str, DeferredToolRequests],
        )
        history = ModelMessagesTypeAdapter.validate_json(self.history)
        given: dict[str, Any] = {"message_history": history, "conversation_id": self.thread}
        if prompt is None:
            calls = [part for part in history[-1].parts if isinstance(part, ToolCallPart)]
            given["deferred_tool_results"] = DeferredToolResults(
                approvals={call.tool_call_id: True for call in calls}
            )
        if streamed:
            async with agent.run_stream(prompt, **given) as ended:
                answer = await ended.get_output()
                self.history = ended.all_messages_json()
        else:
            ran = await agent.run(prompt, **given)
            answer, self.history = ran.output, ran.all_messages_json()
        parts = [part for message in model.requests[-1] for part in message.parts]
        shown = [part for part in parts if isinstance(part, ToolReturnPart)]
        blocks = [b for part in shown if isinstance(part.content, list) for b in part.content]
        return Ran(
            results=[_text_of(part.content) for part in shown],
            failed=[part.outcome == "failed" for part in shown],
            images=sum(isinstance(block, BinaryContent) for block in blocks),
            seen=str(model.requests),
            system=model.asked[-1].system,
            answer=str(answer),
            requests=model.asked,
        )


class _Scripted:
    def __init__(self, turns: Sequence[Sequence[tuple[str, Call]]]) -> None:
        self.turns = list(turns)
        self.requests: list[list[ModelMessage]] = []
        self.asked: list[Request] = []

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        calls = self._next(messages, info)
        made = [ToolCallPart(call.name, dict(call.arguments), call_id) for call_id, call in calls]
        return ModelResponse(made or [TextPart("Done.")])

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> Any:
        calls = self._next(messages, info)
        for number, (call_id, call) in enumerate(calls):
            yield {number: DeltaToolCall(call.name, json.dumps(dict(call.arguments)), tool_call_id=call_id)}
        if not calls:
            yield "Done."

    def _next(self, messages: list[ModelMessage], info: AgentInfo) -> Sequence[tuple[str, Call]]:
        self.requests.append(list(messages))
        self.asked.append(Request([each.name for each in info.function_tools], str(info.instructions)))
        return self.turns.pop(0) if self.turns else []


def _tool(function: Function) -> Tool[None]:
    run = awaited(function)

    async def called() -> Any:
        try:
            result = await run()
        except ValueError as error:
            raise ToolFailed(str(error)) from error
        return [_block(each) for each in result] if isinstance(result, list) else result

    return Tool(called, name=function.name, takes_ctx=False, requires_approval=function.needs_approval)


def _block(block: str | bytes) -> str | BinaryContent:
    return block if isinstance(block, str) else BinaryContent(block, media_type="image/png")


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(each for each in content if isinstance(each, str))
    return str(content)
