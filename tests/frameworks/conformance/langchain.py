"""Agents of LangChain."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import Field

from fdstore.client import Store
from fdstore.integrations.langchain import FdstoreMiddleware
from tests.frameworks.conformance.driver import Call, Driver, Function, Ran, Request, Turn, awaited


class ScriptedChat(FakeMessagesListChatModel):
    """Answers from a script, and keeps the messages and tools of each request."""

    requests: list[list[BaseMessage]] = Field(default_factory=list)
    offered: list[Any] = Field(default_factory=list)
    asked: list[Request] = Field(default_factory=list)

    def bind_tools(self, tools: Any, **options: Any) -> ScriptedChat:
        self.offered = list(tools)
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> Any:
        self.requests.append(messages)
        self.asked.append(Request([getattr(each, "name", "") for each in self.offered], messages[0].text))
        return super()._generate(messages, *args, **options)


class LangChain(Driver):
    name = "LangChain"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.saver = InMemorySaver() if self.thread else None
        self.messages: list[Any] = []

    def adapter(self, store: Store) -> FdstoreMiddleware:
        return FdstoreMiddleware(store, **self.options)

    async def run(self, *turns: Turn, prompt: str = "Go.", streamed: bool = False) -> Ran:
        given = {"messages": [*self.messages, {"role": "user", "content": prompt}]}
        return await self._go_on(self.ours, given, turns, streamed=streamed)

    async def approve(self, store: Store, *turns: Turn) -> Ran:
        return await self._go_on(
            self.adapter(store), Command(resume={"decisions": [{"type": "approve"}]}), turns
        )

    async def _go_on(
        self, ours: FdstoreMiddleware, given: Any, turns: Sequence[Turn], *, streamed: bool = False
    ) -> Ran:
        model = ScriptedChat(responses=[*map(_message, self.numbered(turns)), AIMessage("Done.")])
        asked = {each.name: True for each in self.functions if each.needs_approval}
        agent = create_agent(
            model,
            [_tool(each) for each in self.functions],
            system_prompt="Be brief.",
            middleware=[ours, HumanInTheLoopMiddleware(asked)],
            checkpointer=self.saver,
        )
        config = {"configurable": {"thread_id": self.thread}} if self.thread else {}
        if streamed:
            async for state in agent.astream(given, config, stream_mode="values"):
                ended = state
        else:
            ended = await agent.ainvoke(given, config)
        if not self.thread:
            self.messages = ended["messages"]
        shown = [m for m in (model.requests[-1] if model.requests else []) if isinstance(m, ToolMessage)]
        return Ran(
            results=[message.text for message in shown],
            failed=[message.status == "error" for message in shown],
            images=sum(b["type"] == "image" for m in shown if isinstance(m.content, list) for b in m.content),
            seen=str(model.requests),
            system=model.requests[0][0].text if model.requests else "",
            answer=ended["messages"][-1].text,
            requests=model.asked,
        )


def _message(calls: Sequence[tuple[str, Call]]) -> AIMessage:
    made = [{"name": call.name, "args": dict(call.arguments), "id": call_id} for call_id, call in calls]
    return AIMessage("", tool_calls=made)


def _tool(function: Function) -> StructuredTool:
    run = awaited(function)

    async def called() -> Any:
        try:
            result = await run()
        except ValueError as error:
            raise ToolException(str(error)) from error
        return [_block(each) for each in result] if isinstance(result, list) else result

    return StructuredTool.from_function(
        coroutine=called,
        name=function.name,
        description="A tool.",
        return_direct=function.is_direct,
        handle_tool_error=True,
    )


def _block(block: str | bytes) -> dict[str, str]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    return {"type": "image", "base64": base64.b64encode(block).decode(), "mime_type": "image/png"}
