"""The tool runner of the Anthropic SDK, on a scripted Messages API."""

from __future__ import annotations

import base64
import json
from typing import Any

import anthropic
from anthropic import beta_async_tool
from anthropic.lib.tools import ToolError

from fdstore.client import Store
from fdstore.integrations.anthropic_runner import FdstoreRunner
from fdstore.testing import ScriptedModel, say
from fdstore.testing.replies import ToolUse
from fdstore.testing.replies import Turn as Replies
from tests.frameworks.conformance.driver import Driver, Function, Ran, Turn, awaited


class AnthropicRunner(Driver):
    name = "Anthropic tool runner"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.messages: list[Any] = []

    def adapter(self, store: Store) -> FdstoreRunner:
        return FdstoreRunner(store, self.thread, **self.options)

    async def run(self, *turns: Turn, prompt: str = "Go.", streamed: bool = False) -> Ran:
        script = [
            Replies(tuple(ToolUse(each.name, dict(each.arguments), call_id) for call_id, each in calls))
            for calls in self.numbered(turns)
        ]
        ours = self.ours
        messages = [*self.messages, {"role": "user", "content": prompt}]
        with ScriptedModel([*script, say("Done.")]) as model:
            async with anthropic.AsyncAnthropic(base_url=model.base_url, api_key=model.api_key) as client:
                runner: Any = client.beta.messages.tool_runner(
                    model="any",
                    max_tokens=1000,
                    system=ours.instructions,
                    tools=ours.wrap_async([_tool(each) for each in self.functions]),
                    messages=await ours.messages_async(messages),
                    stream=streamed,
                )
                if streamed:
                    async for stream in runner:
                        ended = await stream.get_final_message()
                else:
                    ended = await runner.until_done()
        last = model.requests[-1]
        self.messages = [*last.messages, {"role": "assistant", "content": "Done."}]
        shown = last.tool_results()
        return Ran(
            results=[each.text for each in shown],
            failed=[each.is_error for each in shown],
            images=json.dumps(last.messages).count('"type": "image"'),
            seen=json.dumps([request.messages for request in model.requests]),
            system=str(last.system),
            answer=ended.content[-1].text,
        )


def _tool(function: Function) -> Any:
    run = awaited(function)

    async def called() -> Any:
        try:
            result = await run()
        except ValueError as error:
            raise ToolError(str(error)) from error
        if isinstance(result, dict):
            return json.dumps(result)
        return [_block(each) for each in result] if isinstance(result, list) else result

    return beta_async_tool(called, name=function.name, description="A tool.")


def _block(block: str | bytes) -> Any:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(block).decode()}
    return {"type": "image", "source": source}
