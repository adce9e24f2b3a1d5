"""The SDK's own tool runners on a scripted Messages API: what the model was shown is in the requests."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import anthropic
import pytest
from anthropic import beta_async_tool, beta_tool
from anthropic.lib.tools import ToolError

from fdstore.client import Store
from fdstore.integrations.anthropic_memory import MemoryTool
from fdstore.integrations.anthropic_runner import FdstoreRunner
from fdstore.testing import ScriptedModel, call, say
from fdstore.testing.requests import Request
from fdstore.tools.catalogue import READING_TOOLS

PARAMS: Any = {"model": "any", "max_tokens": 1000}


def run(
    ours: FdstoreRunner, tools: list[Any], *script: Any, given: Any = "Go.", awaited: bool = False
) -> Request:
    """Run a script to its end, and return the last request."""
    messages = [{"role": "user", "content": given}]
    with ScriptedModel([*script, say("Done.")]) as model:
        if awaited:
            asyncio.run(_run_async(ours, tools, model, messages))
        else:
            with anthropic.Anthropic(base_url=model.base_url, api_key=model.api_key) as client:
                client.beta.messages.tool_runner(
                    **PARAMS,
                    system=ours.instructions,
                    tools=ours.wrap(tools),
                    messages=ours.messages(messages),
                ).until_done()
    return model.requests[-1]


async def _run_async(
    ours: FdstoreRunner, tools: list[Any], model: ScriptedModel, messages: list[Any]
) -> None:
    async with anthropic.AsyncAnthropic(base_url=model.base_url, api_key=model.api_key) as client:
        runner = client.beta.messages.tool_runner(
            **PARAMS,
            system=ours.instructions,
            tools=ours.wrap_async(tools),
            messages=await ours.messages_async(messages),
        )
        await runner.until_done()


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_a_long_result_is_shown_as_its_descriptor_and_read_back_exactly(
    store: Store, log_text: str, awaited: bool
) -> None:
    @beta_tool
    def read_log() -> str:
        """Return the log of the build."""
        return log_text

    @beta_async_tool
    async def read_log_async() -> str:
        """Return the log of the build."""
        return log_text

    tool = read_log_async if awaited else read_log
    last = run(
        FdstoreRunner(store, "chat-7"),
        [tool],
        call(tool.name),
        call("read_fd", fd="fd:1#L4321"),
        call("read_fd", fd="fd:9"),
        awaited=awaited,
        given=log_text + "What is in line 4321?",
    )

    stub, page, refused = last.tool_results()
    assert stub.text.startswith('<fd_result fd="fd:2" ')
    assert "\nline 4321 of the build\n" in page.text
    assert refused.is_error
    assert refused.text.startswith('<fd_error type="not_found"')
    assert "line 2500 of" not in str(last.messages)
    assert 'source="user_input"' in str(last.messages[0])
    assert set(last.tools) == {tool.name, *READING_TOOLS}
    assert store.process("chat-7").read("fd:2", read_all=True).text == log_text


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_images_and_errors_stay_and_short_results_are_untouched(
    store: Store, log_text: str, png: bytes, awaited: bool
) -> None:
    data = base64.b64encode(png).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}

    def look() -> Any:
        return ({"type": "text", "text": "short"}, image, {"type": "text", "text": log_text})

    def fail() -> Any:
        raise ToolError([{"type": "text", "text": "exit code 2\n" + log_text}, image])

    def crash() -> Any:
        raise ValueError("no such day")

    def made(function: Any) -> Any:
        async def awaited_function() -> Any:
            return function()

        options = {"name": function.__name__, "description": "A tool."}
        return beta_async_tool(awaited_function, **options) if awaited else beta_tool(function, **options)

    last = run(
        FdstoreRunner(store, "chat-7"),
        [made(each) for each in (look, fail, crash)],
        *(call("look"), call("fail"), call("crash")),
        awaited=awaited,
    )

    looked, failed, crashed = last.tool_results()
    blocks = [block for m in last.messages[1:] for block in m["content"] if block["type"] == "tool_result"]
    assert [block["type"] for block in blocks[0]["content"]] == ["text", "text", "image", "text"]
    assert blocks[0]["content"][0]["text"] == "short"
    assert blocks[0]["content"][2] == image
    assert '<fd_result fd="fd:2" ' in looked.text
    assert failed.is_error
    assert failed.text.startswith('<fd_result fd="fd:3" ')
    # the API takes only text in an error
    assert {block["type"] for block in blocks[1]["content"]} == {"text"}
    assert blocks[1]["content"][-1]["text"] == "(An error can only be text; left out: image.)"
    assert crashed.is_error
    assert crashed.text == "ValueError('no such day')"


def test_other_tools_of_the_sdk_are_wrapped_and_definitions_stay(store: Store, log_text: str) -> None:
    process = store.process("chat-7")
    process.put("/memories/log", log_text[:20000])
    search = {"type": "web_search_20250305", "name": "web_search"}
    ours = FdstoreRunner(store, process="chat-7")

    tools = ours.wrap([MemoryTool(process), search])
    shown = tools[0].call({"command": "view", "path": "/memories/log"})

    assert tools[0].to_dict() == {"type": "memory_20250818", "name": "memory"}
    assert tools[1] == search
    assert shown.startswith('<fd_result fd="fd:')
