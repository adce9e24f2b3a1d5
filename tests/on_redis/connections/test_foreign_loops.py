"""Agent loops outside fdstore, using its tools: the Messages API directly, and the SDK's tool runner.

The loops are those in the README and docs/how-to/own-loop.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import pytest

import fdstore
import fdstore.aio
from fdstore import FDConfig, Toolset
from fdstore.testing import Script, ScriptedModel, call, say, turn

MODEL: Any = "claude-sonnet-5-5"
LOG = "".join(f"line {number}\n" for number in range(1, 2001))
ENABLED = ["read_fd", "fd_to_file"]


def search_logs(service: str) -> str:
    """All lines that a service logged."""
    return LOG


# the Messages API directly


def by_hand(client: anthropic.Anthropic, tools: Toolset, question: str) -> str:
    messages: list[Any] = [{"role": "user", "content": tools.wrap_input(question)}]
    while True:
        reply = client.messages.create(
            model=MODEL,
            max_tokens=4096,
            system=tools.instructions,
            tools=tools.definitions,
            messages=messages,
        )
        tools.take_references(reply.content)
        messages.append({"role": "assistant", "content": reply.content})
        if reply.stop_reason != "tool_use":
            return reply.content[-1].text
        results = []
        for block in reply.content:
            if block.type == "tool_use":
                result = tools.call(block.name, block.input, call_id=block.id)
                results.append(
                    {
                        "type": "tool_result",
                        "tool_use_id": block.id,
                        "content": result.content,
                        "is_error": result.is_error,
                    }
                )
        messages.append({"role": "user", "content": results})


# the SDK's tool runner


def by_runner(client: anthropic.Anthropic, tools: Toolset, question: str) -> str:
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=4096,
        system=tools.instructions,
        tools=tools.runnable(),
        messages=[{"role": "user", "content": tools.wrap_input(question)}],
    )
    for message in runner:
        tools.take_references(message.content)  # before the runner calls the tools of this turn
    return message.content[-1].text


# the awaitable runner


async def by_async_runner(client: anthropic.AsyncAnthropic, tools: fdstore.aio.Toolset, question: str) -> str:
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=4096,
        system=tools.instructions,
        tools=tools.runnable(),
        messages=[{"role": "user", "content": await tools.wrap_input(question)}],
    )
    async for message in runner:
        await tools.take_references(message.content)
    return message.content[-1].text


Run = Callable[[ScriptedModel, str, Path, str], str]


def blocking(loop: Callable[..., str]) -> Run:
    def run(model: ScriptedModel, url: str, folder: Path, question: str) -> str:
        with (
            fdstore.connect(url) as store,
            anthropic.Anthropic(base_url=model.base_url, api_key=model.api_key) as client,
        ):
            proc = store.process("triage")
            config = FDConfig(max_input_chars=100)
            tools = Toolset(proc, enabled=ENABLED, python=[search_logs], config=config, export_root=folder)
            return loop(client, tools, question)

    return run


def awaiting(model: ScriptedModel, url: str, folder: Path, question: str) -> str:
    async def main() -> str:
        async with (
            await fdstore.aio.connect(url) as store,
            anthropic.AsyncAnthropic(base_url=model.base_url, api_key=model.api_key) as client,
        ):
            proc = await store.process("triage")
            config = FDConfig(max_input_chars=100)
            tools = fdstore.aio.Toolset(
                proc, enabled=ENABLED, python=[search_logs], config=config, export_root=folder
            )
            return await by_async_runner(client, tools, question)

    return asyncio.run(main())


LOOPS = {"by hand": blocking(by_hand), "tool runner": blocking(by_runner), "async tool runner": awaiting}


@pytest.fixture(params=list(LOOPS))
def run(request: pytest.FixtureRequest, redis_url: str, tmp_path: Path) -> Callable[[Script, str], Any]:
    """`run(script, question)`: the answer, and the model that gave it."""

    def played(script: Script, question: str) -> tuple[str, ScriptedModel]:
        with ScriptedModel(script) as model:
            return LOOPS[request.param](model, redis_url, tmp_path, question), model

    return played


Played = Callable[[Script, str], tuple[str, ScriptedModel]]


def test_large_texts_are_read_by_page_and_passages_are_stored(run: Played, tmp_path: Path) -> None:
    report = turn(
        say('<ref id="report">Line 900 is odd.</ref>'),
        call("fd_to_file", fd="ref:report", file_path="report.txt"),
        call("fd_to_file", fd="fd:2", file_path="log.txt"),
    )
    script = [call("search_logs", service="db"), call("read_fd", fd="fd:2#L900"), report, say("Saved.")]

    answer, model = run(script, "What is odd? " * 20)

    assert answer == "Saved."
    first, second, third, fourth = model.requests
    assert first.tools == ("read_fd", "fd_to_file", "search_logs")
    assert 'read_fd(fd="fd:1", start=2)' in first.system
    assert '<fd_result fd="fd:1"' in first.last_text()
    assert '<fd_result fd="fd:2"' in second.last_text()
    assert "\nline 900\n" in third.last_text()
    assert fourth.last_text().count('success="true"') == 2
    assert (tmp_path / "report.txt").read_text() == "Line 900 is odd."
    assert (tmp_path / "log.txt").read_text() == LOG


def test_mistakes_of_the_model_become_readable_results(run: Played) -> None:
    answer, model = run(
        [turn(call("read_fd", fd="fd:9"), call("read_fd", page="one")), say("Sorry.")], "Read."
    )

    missing, misspelt = model.requests[1].tool_results()
    assert answer == "Sorry."
    assert (missing.is_error, misspelt.is_error) == (True, True)
    assert '<fd_error type="not_found" fd="fd:9">' in missing.text
    assert '<fd_error type="invalid_argument">' in misspelt.text
