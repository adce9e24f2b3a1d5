"""Real agents of LlamaIndex, with its own mock of a model, which keeps what it was shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.workflow import Context

from fdstore.client import Store
from fdstore.integrations.llama_index import FdstoreTools
from tests.frameworks.conformance.llama_index import Scripted, scripted


def ask(name: str, call_id: str, **arguments: Any) -> ToolCallBlock:
    return ToolCallBlock(tool_name=name, tool_kwargs=arguments, tool_call_id=call_id)


def agent_of(ours: FdstoreTools, tools: list[Any], model: Scripted, **options: Any) -> FunctionAgent:
    return FunctionAgent(
        tools=ours.wrap(tools), llm=model, system_prompt=ours.instructions, name="triage", **options
    )


async def results(agent: Any, given: str = "Go.", **options: Any) -> list[str]:
    """Run an agent, and return the texts of its results of tools."""
    ended = await agent.run(given, **options)
    return [call.tool_output.content for call in ended.tool_calls]


def run(*arguments: Any, **options: Any) -> list[str]:
    return asyncio.run(results(agent_of(*arguments), **options))


def test_a_context_goes_on_with_its_descriptors_also_from_its_dict(
    store: Store, read_log: Callable[[], str]
) -> None:
    ours = FdstoreTools(store)

    async def go_on() -> list[str]:
        first = agent_of(ours, [read_log], scripted(ask("read_log", "call_1")))
        context = Context(first)
        await results(first, ctx=context)
        second = agent_of(FdstoreTools(store), [], scripted(ask("read_fd", "call_2", fd="fd:1#L9")))
        return await results(second, "And now?", ctx=Context.from_dict(second, context.to_dict()))

    assert "\nline 9 of the build\n" in asyncio.run(go_on())[-1]
    assert len(store.trees()) == 1


def test_agents_of_a_workflow_share_the_process_of_its_context(
    store: Store, read_log: Callable[[], str]
) -> None:
    ours = FdstoreTools(store)
    first = agent_of(
        ours,
        [read_log],
        scripted(ask("read_log", "call_1"), ask("handoff", "call_2", to_agent="b", reason="r")),
    )
    first.description = "reads"
    second = agent_of(ours, [], scripted(ask("read_fd", "call_3", fd="fd:1#L9")))
    second.name, second.description = "b", "counts"

    async def ended() -> list[str]:
        return await results(AgentWorkflow(agents=[first, second], root_agent="triage"))

    assert "\nline 9 of the build\n" in asyncio.run(ended())[-1]


def test_parallel_calls_share_a_process_and_a_tool_gets_its_context(store: Store, log_text: str) -> None:
    async def read_log(ctx: Context) -> str:
        """Return the log."""
        stores.add(id(ctx.store))
        return log_text

    read_log.__annotations__["ctx"] = Context  # LlamaIndex does not resolve texts
    stores: set[int] = set()
    model = scripted([ask("read_log", "call_1"), ask("read_log", "call_2")], ask("list_fds", "call_3"))

    first, second, listed = run(FdstoreTools(store), [read_log], model)

    assert {first.split()[1], second.split()[1]} == {'fd="fd:1"', 'fd="fd:2"'}
    assert 'count="2"' in listed
    assert len(stores) == 1
