"""Agents of Google's ADK."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types
from pydantic import Field

from fdstore.client import Store
from fdstore.integrations.google_adk import FdstorePlugin
from tests.frameworks.conformance.driver import Driver, Function, Ran, Request, Turn, awaited


class ScriptedLlm(BaseLlm):
    """Answers from a script, and keeps the contents, tools and instruction of each request."""

    model: str = "scripted"
    script: list[list[types.Part]]
    requests: list[list[types.Content]] = Field(default_factory=list)
    offered: list[str] = Field(default_factory=list)
    system: str = ""
    asked: list[Request] = Field(default_factory=list)

    async def generate_content_async(
        self, request: LlmRequest, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        self.requests.append([content.model_copy(deep=True) for content in request.contents])
        self.offered = sorted(request.tools_dict)
        self.system = str(request.config.system_instruction)
        self.asked.append(Request(self.offered, self.system))
        turn = len(self.requests) - 1
        parts = self.script[turn] if turn < len(self.script) else [types.Part(text="Done.")]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


class GoogleADK(Driver):
    name = "Google ADK"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.sessions = InMemorySessionService()
        self.session: Any = None
        self.waiting: Any = None

    def adapter(self, store: Store) -> FdstorePlugin:
        return FdstorePlugin(store, **self.options)

    async def run(self, *turns: Turn, prompt: str = "Go.", streamed: bool = False) -> Ran:
        return await self._go_on(self.ours, types.Part(text=prompt), turns, streamed=streamed)

    async def approve(self, store: Store, *turns: Turn) -> Ran:
        answer = types.FunctionResponse(
            name=self.waiting.name, id=self.waiting.id, response={"confirmed": True}
        )
        return await self._go_on(self.adapter(store), types.Part(function_response=answer), turns)

    async def _go_on(
        self, ours: FdstorePlugin, given: types.Part, turns: Sequence[Turn], *, streamed: bool = False
    ) -> Ran:
        script = [
            [
                types.Part(
                    function_call=types.FunctionCall(name=call.name, args=dict(call.arguments), id=call_id)
                )
                for call_id, call in calls
            ]
            for calls in self.numbered(turns)
        ]
        model = ScriptedLlm(script=script)
        agent = LlmAgent(name="triage", model=model, tools=[_tool(each) for each in self.functions])
        runner = Runner(agent=agent, app_name="app", plugins=[ours], session_service=self.sessions)
        if self.session is None:
            self.session = await self.sessions.create_session(
                app_name="app", user_id="ada", session_id=self.thread
            )
        mode = StreamingMode.SSE if streamed else StreamingMode.NONE
        parts: list[types.Part] = []
        async for event in runner.run_async(
            user_id="ada",
            session_id=self.session.id,
            new_message=types.Content(role="user", parts=[given]),
            run_config=RunConfig(streaming_mode=mode),
        ):
            parts += event.content.parts if event.content and event.content.parts else []
        self.waiting = next(
            (p.function_call for p in parts if p.function_call and "confirmation" in p.function_call.name),
            None,
        )
        sent = (
            [part for content in model.requests[-1] for part in content.parts or []] if model.requests else []
        )
        shown = [part.function_response for part in sent if part.function_response]
        last = parts[-1]
        return Ran(
            results=[_text_of(each.response) for each in shown],
            failed=["error" in each.response for each in shown],
            images=sum(len(each.parts or []) for each in shown),
            seen=str(model.requests),
            system=model.system,
            answer=_text_of(last.function_response.response) if last.function_response else str(last.text),
            requests=model.asked,
        )


def _tool(function: Function) -> FunctionTool:
    run = awaited(function)

    async def called(tool_context: ToolContext) -> Any:
        tool_context.actions.skip_summarization = function.is_direct
        try:
            result = await run()
        except ValueError as error:
            return {"error": str(error)}
        if not isinstance(result, list):
            return result
        return [
            each if isinstance(each, str) else types.Part.from_bytes(data=each, mime_type="image/png")
            for each in result
        ]

    called.__name__, called.__doc__ = function.name, "A tool."
    called.__annotations__ = {"tool_context": ToolContext}
    return FunctionTool(called, require_confirmation=function.needs_approval)


def _text_of(response: Any) -> str:
    if isinstance(response, dict) and len(response) == 1:
        [response] = response.values()
    if isinstance(response, list):
        return "\n".join(map(str, response))
    return str(response)
