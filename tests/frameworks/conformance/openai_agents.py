"""Agents of the OpenAI Agents SDK."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from agents import Agent, FunctionTool, Runner, RunState, ToolOutputText, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from fdstore.client import Store
from fdstore.integrations.openai_agents import FdstoreTools
from tests.frameworks.conformance.driver import Driver, Function, Ran, Turn, awaited

set_tracing_disabled(True)


class OpenAIAgents(Driver):
    name = "OpenAI Agents SDK"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.items: list[Any] = []
        self.waiting = ""

    def adapter(self, store: Store) -> FdstoreTools:
        return FdstoreTools(store, **self.options)

    async def run(self, *turns: Turn, prompt: str = "Go.", streamed: bool = False) -> Ran:
        given = [*self.items, {"role": "user", "content": prompt}]
        return await self._go_on(self.ours, given, turns, streamed=streamed)

    async def approve(self, store: Store, *turns: Turn) -> Ran:
        return await self._go_on(self.adapter(store), None, turns)

    async def _go_on(
        self, ours: FdstoreTools, given: Any, turns: Sequence[Turn], *, streamed: bool = False
    ) -> Ran:
        script = [
            [
                function_call(call.name, json.dumps(dict(call.arguments)), call_id=call_id)
                for call_id, call in calls
            ]
            for calls in self.numbered(turns)
        ]
        model = ScriptedModel([*script, [assistant_message("Done.")]])
        direct = [each.name for each in self.functions if each.is_direct]
        agent = Agent(
            "triage",
            instructions=ours.instructions,
            tools=ours.wrap([_tool(each) for each in self.functions]),
            model=model,
            tool_use_behavior={"stop_at_tool_names": direct} if direct else "run_llm_again",
        )
        if given is None:
            given = await RunState.from_json(agent, json.loads(self.waiting))
            given.approve(given.get_interruptions()[0])
        config = ours.run_config(self.thread) if self.thread else None
        if streamed:
            ended: Any = Runner.run_streamed(agent, given, run_config=config)
            async for _ in ended.stream_events():
                pass
        else:
            ended = await Runner.run(agent, given, run_config=config)
        if ended.interruptions:
            self.waiting = json.dumps(ended.to_state().to_json())
        else:
            self.items = ended.to_input_list()
        shown = (
            [item["output"] for item in model.calls[-1].input if item.get("type") == "function_call_output"]
            if model.calls
            else []
        )
        blocks = [block for each in shown if isinstance(each, list) for block in each]
        return Ran(
            results=[_text_of(each) for each in shown],
            failed=["An error occurred" in _text_of(each) for each in shown],
            images=sum(block["type"] == "input_image" for block in blocks),
            seen=str([call.input for call in model.calls]),
            system=str(model.calls[0].system_instructions) if model.calls else "",
            answer=str(ended.final_output),
        )


def _tool(function: Function) -> FunctionTool:
    run = awaited(function)

    async def called() -> Any:
        result = await run()
        return [_block(each) for each in result] if isinstance(result, list) else result

    return function_tool(
        called,
        name_override=function.name,
        description_override="A tool.",
        needs_approval=function.needs_approval,
    )


def _block(block: str | bytes) -> Any:
    if isinstance(block, str):
        return ToolOutputText(text=block)
    return {"type": "image", "image_url": f"data:image/png;base64,{base64.b64encode(block).decode()}"}


def _text_of(output: Any) -> str:
    if isinstance(output, str):
        return output
    return "\n".join(block["text"] for block in output if "text" in block)
