"""Agents of Haystack."""

from __future__ import annotations

import base64
from typing import Any

from haystack.components.agents import Agent
from haystack.components.generators.chat import MockChatGenerator
from haystack.dataclasses import ChatMessage, ImageContent, TextContent, ToolCall
from haystack.tools import Tool

from fdstore.client import Store
from fdstore.integrations.haystack import FdstoreHook
from tests.frameworks.conformance.driver import Driver, Function, Ran, Turn, blocking


class Haystack(Driver):
    name = "Haystack"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.messages: list[ChatMessage] = []

    def adapter(self, store: Store) -> FdstoreHook:
        return FdstoreHook(store, **self.options)

    async def run(self, *turns: Turn, prompt: str = "Go.", streamed: bool = False) -> Ran:
        script = [
            ChatMessage.from_assistant(
                tool_calls=[ToolCall(call.name, dict(call.arguments), id=call_id) for call_id, call in calls]
            )
            for calls in self.numbered(turns)
        ]
        hook = self.ours
        model = MockChatGenerator([*script, ChatMessage.from_assistant("Done.")])
        agent = Agent(
            chat_generator=model,
            tools=[*(_tool(each) for each in self.functions), *hook.tools],
            system_prompt=hook.instructions,
            hooks={"before_run": [hook], "after_tool": [hook]},
            streaming_callback=(lambda chunk: None) if streamed else None,
        )
        context = {"fdstore_thread": self.thread} if self.thread else None
        given: Any = {"messages": [*self.messages, ChatMessage.from_user(prompt)], "hook_context": context}
        ended = agent.run(**given) if isinstance(self.store, Store) else await agent.run_async(**given)
        system, *self.messages = ended["messages"]
        shown = [m.tool_call_result for m in self.messages if m.tool_call_result]
        blocks = [block for each in shown if isinstance(each.result, list) for block in each.result]
        return Ran(
            results=[_text_of(each.result) for each in shown],
            failed=[each.error for each in shown],
            images=sum(isinstance(block, ImageContent) for block in blocks),
            seen=str([message.to_dict() for message in self.messages]),
            system=str(system.text),
            answer=str(ended["last_message"].text),
        )


def _tool(function: Function) -> Tool:
    run = blocking(function)

    def called() -> Any:
        result = run()
        return [_block(each) for each in result] if isinstance(result, list) else result

    blocks = function.returns_blocks
    return Tool(
        name=function.name,
        description="A tool.",
        parameters={"type": "object", "properties": {}},
        function=called,
        outputs_to_string={"raw_result": True} if blocks else None,
    )


def _block(block: str | bytes) -> Any:
    if isinstance(block, str):
        return TextContent(block)
    return ImageContent(base64.b64encode(block).decode(), mime_type="image/png")


def _text_of(result: Any) -> str:
    if isinstance(result, str):
        return result
    return "\n".join(block.text for block in result if isinstance(block, TextContent))
