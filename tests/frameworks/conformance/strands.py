"""Agents of Strands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent, HookProvider, HookRegistry
from strands.models import Model

from fdstore.client import Store
from fdstore.integrations.strands import FdstorePlugin
from tests.frameworks.conformance.driver import Call, Driver, Function, Ran, Request, Turn, awaited


class Scripted(Model):
    """Calls tools in turn, and keeps what each request showed."""

    def __init__(self, *turns: Sequence[tuple[str, Call]]) -> None:
        self.turns = list(turns)
        self.requests: list[dict[str, Any]] = []

    def update_config(self, **config: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *arguments: Any, **options: Any) -> Any:
        raise NotImplementedError

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, **options: Any
    ) -> Any:
        system = options.get("system_prompt_content")
        shown = {"messages": list(messages), "tools": tool_specs, "system": system or system_prompt}
        self.requests.append({**shown, "seen": repr(messages)})
        calls = self.turns.pop(0) if self.turns else []
        yield {"messageStart": {"role": "assistant"}}
        for call_id, call in calls:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": call.name, "toolUseId": call_id}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(dict(call.arguments))}}}}
            yield {"contentBlockStop": {}}
        if not calls:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "Done."}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


class _Approval(HookProvider):
    def __init__(self, names: set[str]) -> None:
        self.names = names

    def register_hooks(self, registry: HookRegistry, **options: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self.ask)

    def ask(self, event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] in self.names:
            event.interrupt("approval", reason="May it run?")


class Strands(Driver):
    name = "Strands"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.kept: Any = None
        self.waiting: Any = None

    def adapter(self, store: Store) -> FdstorePlugin:
        named = {"process": self.thread} if self.thread else {}
        return FdstorePlugin(store, **{**named, **self.options})

    async def run(self, *turns: Turn, prompt: str = "Go.", streamed: bool = False) -> Ran:
        return await self._go_on(self.ours, prompt, turns, streamed=streamed)

    async def approve(self, store: Store, *turns: Turn) -> Ran:
        responses = [
            {"interruptResponse": {"interruptId": each.id, "response": "y"}} for each in self.waiting
        ]
        return await self._go_on(self.adapter(store), responses, turns)

    async def _go_on(
        self, ours: FdstorePlugin, given: Any, turns: Sequence[Turn], *, streamed: bool = False
    ) -> Ran:
        model = Scripted(*self.numbered(turns))
        agent = Agent(
            model,
            tools=[_tool(each) for each in self.functions],
            callback_handler=None,
            plugins=[ours],
            hooks=[_Approval({each.name for each in self.functions if each.needs_approval})],
        )
        if self.kept is not None:
            agent.load_snapshot(self.kept)
        if streamed:
            async for event in agent.stream_async(given):
                ended = event.get("result")
        else:
            ended = await agent.invoke_async(given)
        self.waiting = ended.interrupts
        self.kept = agent.take_snapshot(preset="session")
        shown = [
            b["toolResult"] for m in model.requests[-1]["messages"] for b in m["content"] if "toolResult" in b
        ]
        return Ran(
            results=["\n".join(b["text"] for b in each["content"] if "text" in b) for each in shown],
            failed=[each["status"] == "error" for each in shown],
            images=sum("image" in block for each in shown for block in each["content"]),
            seen=str([request["seen"] for request in model.requests]),
            system=str(model.requests[0]["system"]),
            answer=str(ended).strip(),
            requests=[
                Request([each["name"] for each in request["tools"]], str(request["system"]))
                for request in model.requests
            ],
        )


def _tool(function: Function) -> Any:
    run = awaited(function)

    async def called() -> Any:
        result = await run()
        if isinstance(result, dict):
            return {"status": "success", "content": [{"json": result}]}
        if isinstance(result, list):
            return {"status": "success", "content": [_block(each) for each in result]}
        return result

    return tool(called, name=function.name, description="A tool.")


def _block(block: str | bytes) -> Any:
    return (
        {"text": block}
        if isinstance(block, str)
        else {"image": {"format": "png", "source": {"bytes": block}}}
    )
