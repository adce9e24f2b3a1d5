"""Agents of Agno, on a scripted Messages API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.media import Image
from agno.models.anthropic import Claude
from agno.tools import tool
from agno.tools.function import ToolResult

from fdstore.client import Store
from fdstore.integrations.agno import FdstoreTools
from fdstore.testing import ScriptedModel, say
from fdstore.testing.replies import ToolUse
from fdstore.testing.replies import Turn as Replies
from tests.frameworks.conformance.driver import Driver, Function, Ran, Turn, awaited


class Agno(Driver):
    name = "Agno"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.db = InMemoryDb()
        self.waiting: Any = None

    def adapter(self, store: Store) -> FdstoreTools:
        return FdstoreTools(store, **self.options)

    async def run(self, *turns: Turn, prompt: str = "Go.", streamed: bool = False) -> Ran:
        return await self._go_on(self.ours, prompt, turns, streamed=streamed)

    async def approve(self, store: Store, *turns: Turn) -> Ran:
        return await self._go_on(self.adapter(store), None, turns)

    async def _go_on(
        self, ours: FdstoreTools, prompt: str | None, turns: Sequence[Turn], *, streamed: bool = False
    ) -> Ran:
        script = [
            Replies(tuple(ToolUse(call.name, dict(call.arguments), call_id) for call_id, call in calls))
            for calls in self.numbered(turns)
        ]
        with ScriptedModel([*script, say("Done.")]) as model:
            agent = Agent(
                name="triage",
                model=Claude("any", api_key=model.api_key, client_params={"base_url": model.base_url}),
                tools=[*map(_tool, self.functions), ours],
                tool_hooks=[ours.store_result],
                pre_hooks=[ours.store_input],
                db=self.db if self.thread else None,
                add_history_to_context=bool(self.thread),
                telemetry=False,
            )
            if prompt is None:
                for requirement in self.waiting.active_requirements:
                    requirement.confirm()
                ended: Any = await agent.acontinue_run(
                    run_id=self.waiting.run_id,
                    session_id=self.thread,
                    requirements=self.waiting.requirements,
                )
            elif streamed:
                events = [each async for each in agent.arun(prompt, session_id=self.thread, stream=True)]
                ended = "".join(str(each.content) for each in events if each.event.endswith("RunContent"))
            else:
                ended = await agent.arun(prompt, session_id=self.thread)
        self.waiting = ended
        last = model.requests[-1]
        shown = last.tool_results()
        return Ran(
            results=[each.text for each in shown],
            failed=[each.is_error or "Error" in each.text or "exit code" in each.text for each in shown],
            images=json.dumps(last.messages).count('"type": "image"'),
            seen=json.dumps([request.messages for request in model.requests]),
            system=str(last.system),
            answer=ended if streamed else str(ended.content),
        )


def _tool(function: Function) -> Any:
    run = awaited(function)

    async def called() -> Any:
        result = await run()
        if not isinstance(result, list):
            return result
        images = [Image(content=each, mime_type="image/png") for each in result if isinstance(each, bytes)]
        return ToolResult(content="\n".join(each for each in result if isinstance(each, str)), images=images)

    return tool(
        name=function.name,
        description="A tool.",
        stop_after_tool_call=function.is_direct,
        requires_confirmation=function.needs_approval,
    )(called)
