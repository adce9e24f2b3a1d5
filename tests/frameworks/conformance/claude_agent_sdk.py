"""The real Claude Code, as the Claude Agent SDK runs it, on a scripted Messages API."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool

from fdstore.client import Store
from fdstore.integrations.claude_agent_sdk import FdstoreHooks
from fdstore.testing import ScriptedModel, say
from fdstore.testing.replies import ToolUse
from fdstore.testing.replies import Turn as Replies
from fdstore.testing.requests import Request
from tests.frameworks.conformance.driver import Call, Driver, Function, Ran, Turn, awaited


class ClaudeAgentSDK(Driver):
    name = "Claude Agent SDK"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.directory = tempfile.TemporaryDirectory()
        self.session: str | None = None

    def adapter(self, store: Store) -> FdstoreHooks:
        return FdstoreHooks(store, self.thread, **self.options)

    async def run(self, *turns: Turn, prompt: str = "Go.", streamed: bool = False) -> Ran:
        script = [
            Replies(
                tuple(ToolUse(self._named(call), dict(call.arguments), call_id) for call_id, call in calls)
            )
            for calls in self.numbered(turns)
        ]
        with self._scripted(script) as model:
            given = ClaudeAgentOptions(
                cwd=self.directory.name,
                env={**model.environ, "HOME": self.directory.name, "IS_SANDBOX": "1"},
                allowed_tools=["mcp__user"],
                mcp_servers={"user": create_sdk_mcp_server("user", tools=[*map(_tool, self.functions)])},
                setting_sources=[],
                resume=self.session,
                include_partial_messages=streamed,
            )
            answer = ""
            async for message in query(
                prompt=await self.ours.prompt(prompt), options=self.ours.options(given)
            ):
                if isinstance(message, ResultMessage):
                    answer, self.session = str(message.result), message.session_id
        requests = [request for request in model.requests if _is_of_the_conversation(request)]
        last = requests[-1]
        results = last.tool_results()
        return Ran(
            results=[each.text for each in results],
            failed=[each.is_error for each in results],
            images=json.dumps(last.messages).count('"type": "image"'),
            seen=json.dumps([request.messages for request in requests]),
            system=str(last.system),
            answer=answer,
        )

    def _named(self, call: Call) -> str:
        is_theirs = call.name in {each.name for each in self.functions}
        return f"mcp__{'user' if is_theirs else 'fdstore'}__{call.name}"

    @contextmanager
    def _scripted(self, script: list[Replies]) -> Iterator[ScriptedModel]:
        left = [*script, say("Done.")]

        def answer(request: Request) -> Any:
            return left.pop(0) if _is_of_the_conversation(request) else say("a title")

        with ScriptedModel(answer) as model:
            yield model


def _is_of_the_conversation(request: Request) -> bool:
    return "Bash" in request.tools


def _tool(function: Function) -> Any:
    run = awaited(function)

    @tool(function.name, "A tool.", {})
    async def called(arguments: Any) -> Any:
        try:
            result = await run()
        except ValueError as error:
            return {"content": [{"type": "text", "text": str(error)}], "is_error": True}
        if isinstance(result, dict):
            result = json.dumps(result)
        return {"content": [_block(each) for each in ([result] if isinstance(result, str) else result)]}

    return called


def _block(block: str | bytes) -> dict[str, str]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    return {"type": "image", "data": base64.b64encode(block).decode(), "mimeType": "image/png"}
