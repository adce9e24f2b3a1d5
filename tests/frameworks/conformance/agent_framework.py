"""Agents of Microsoft Agent Framework."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)

from fdstore.client import Store
from fdstore.integrations.agent_framework import FdstoreProvider
from tests.frameworks.conformance.driver import Driver, Function, Ran, Request, Turn, awaited


class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Answers from a script, and keeps the messages and options of each request."""

    def __init__(self, *script: Content | list[Content]) -> None:
        super().__init__()
        self.script = [each if isinstance(each, list) else [each] for each in script]
        self.requests: list[list[Message]] = []
        self.options: Any = {}
        self.asked: list[Request] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
        if stream:
            return ResponseStream(self._updates(messages, options), finalizer=ChatResponse.from_updates)
        return self._response(messages, options)

    async def _response(self, messages: Any, options: Any) -> ChatResponse:
        return ChatResponse(messages=[Message("assistant", self._next(messages, options))])

    async def _updates(self, messages: Any, options: Any) -> AsyncIterator[ChatResponseUpdate]:
        for content in self._next(messages, options):
            yield ChatResponseUpdate(contents=[content], role="assistant")

    def _next(self, messages: Any, options: Any) -> list[Content]:
        self.requests.append(list(messages))
        self.options = options
        tools = [each.name for each in options.get("tools") or ()]
        self.asked.append(Request(tools, str(options.get("instructions"))))
        turn = len(self.requests) - 1
        return self.script[turn] if turn < len(self.script) else [Content.from_text("Done.")]


class AgentFramework(Driver):
    name = "Agent Framework"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.kept: Any = None
        self.waiting: Any = None

    def adapter(self, store: Store) -> FdstoreProvider:
        return FdstoreProvider(store, **self.options)

    async def run(self, *turns: Turn, prompt: str = "Go.", streamed: bool = False) -> Ran:
        return await self._go_on(self.ours, prompt, turns, streamed=streamed)

    async def approve(self, store: Store, *turns: Turn) -> Ran:
        answer = Message("user", [self.waiting[0].to_function_approval_response(True)])
        return await self._go_on(self.adapter(store), answer, turns)

    async def _go_on(
        self, ours: FdstoreProvider, given: Any, turns: Sequence[Turn], *, streamed: bool = False
    ) -> Ran:
        script = [
            [
                Content.from_function_call(call_id, call.name, arguments=dict(call.arguments))
                for call_id, call in calls
            ]
            for calls in self.numbered(turns)
        ]
        client = ScriptedClient(*script)
        agent = Agent(
            client,
            "Be brief.",
            tools=[_tool(each) for each in self.functions],
            context_providers=[ours],
        )
        if self.kept is None:
            session = agent.create_session(session_id=self.thread) if self.thread else agent.create_session()
        else:
            session = type(agent.create_session()).from_dict(self.kept)
        if streamed:
            stream = agent.run(given, session=session, stream=True)
            async for _ in stream:
                pass
            ended = await stream.get_final_response()
        else:
            ended = await agent.run(given, session=session)
        self.kept, self.waiting = session.to_dict(), ended.user_input_requests
        shown = [
            content
            for message in client.requests[-1]
            for content in message.contents
            if content.type == "function_result"
        ]
        items = [item for each in shown for item in each.items or []]
        return Ran(
            results=[_text_of(each) for each in shown],
            failed=[each.exception is not None for each in shown],
            images=sum(item.type == "data" for item in items),
            seen=str([message.to_dict() for request in client.requests for message in request]),
            system=str(client.options["instructions"]),
            answer=ended.text,
            requests=client.asked,
        )


def _tool(function: Function) -> Any:
    run = awaited(function)

    async def called() -> Any:
        result = await run()
        if not isinstance(result, list):
            return result
        return [
            Content.from_text(each) if isinstance(each, str) else Content.from_data(each, "image/png")
            for each in result
        ]

    mode: Any = "always_require" if function.needs_approval else "never_require"
    return tool(name=function.name, description="A tool.", approval_mode=mode)(called)


def _text_of(result: Content) -> str:
    texts = [item.text for item in result.items or [] if item.type == "text"]
    return "\n".join(texts) if texts else str(result.result)
