"""Real agents of LlamaIndex, with its own mock of a model, which keeps what it was shown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context

import fdstore
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


@pytest.mark.parametrize("streaming", [False, True])
def test_a_long_result_is_shown_as_its_descriptor_and_read_back_exactly(
    store: Store, read_log: Callable[[], str], log_text: str, streaming: bool
) -> None:
    model = scripted(ask("read_log", "call_1"), ask("read_fd", "call_2", fd="fd:1#L4321"))

    stub, page = asyncio.run(results(agent_of(FdstoreTools(store), [read_log], model, streaming=streaming)))

    assert stub.startswith('<fd_result fd="fd:1" ')
    assert "\nline 4321 of the build\n" in page
    assert not [m for request in model.requests for m in request if "line 2500 of" in str(m.content)]
    assert "search_fd" in str(model.requests[0][0].content)
    [tree] = store.trees()
    assert store.process(tree.id).read("fd:1", read_all=True).text == log_text


def test_a_store_of_asyncio_serves_its_event_loop(redis_url: str, read_log: Callable[[], str]) -> None:
    async def shown() -> list[str]:
        async with await fdstore.aio.connect(redis_url) as store:
            model = scripted(ask("read_log", "call_1"), ask("read_fd", "call_2", fd="fd:1#L2"))
            return await results(agent_of(FdstoreTools(store), [read_log], model))

    stub, page = asyncio.run(shown())

    assert stub.startswith("<fd_result ")
    assert "\nline 2 of the build\n" in page


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


def test_users_have_processes_of_their_own(store: Store, read_log: Callable[[], str]) -> None:
    ours = FdstoreTools(store)
    run(ours, [read_log], scripted(ask("read_log", "call_1")))

    listed, refused = run(ours, [], scripted(ask("list_fds", "call_1"), ask("read_fd", "call_2", fd="fd:1")))

    assert 'count="0"' in listed
    assert refused.startswith('<fd_error type="not_found"')


def test_an_id_in_the_messages_of_another_run_is_refused_with_the_reason(
    store: Store, read_log: Callable[[], str]
) -> None:
    ours = FdstoreTools(store)
    first = scripted(ask("read_log", "call_1"))
    run(ours, [read_log], first)
    reads = ask("read_fd", "call_3", fd="fd:1"), ask("read_fd", "call_4", fd="fd:2#L7")
    second = scripted(ask("read_log", "call_2"), *reads)

    stored, refused, page = run(ours, [read_log], second, chat_history=first.requests[-1][1:])

    assert stored.startswith('<fd_result fd="fd:2" ')
    assert "was given by another process" in refused
    assert "\nline 7 of the build\n" in page


def test_an_agent_in_a_tool_shares_the_process_of_its_run(store: Store, read_log: Callable[[], str]) -> None:
    """An id that the inner agent returns works in the outer one, and means the same text."""
    ours = FdstoreTools(store)

    async def ask_reader() -> str:
        """Ask the reader."""
        inner = agent_of(ours, [read_log], scripted(ask("read_log", "call_i"), last="It is fd:1."))
        return str(await inner.run("Go."))

    model = scripted(
        ask("ask_reader", "call_1"), ask("read_log", "call_2"), ask("read_fd", "call_3", fd="fd:1#L9")
    )

    said, stored, page = run(ours, [ask_reader, read_log], model)

    assert said == "It is fd:1."
    assert stored.startswith('<fd_result fd="fd:2" ')
    assert "\nline 9 of the build\n" in page
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


def test_images_stay_beside_texts_that_are_stored(store: Store, log_text: str, png: bytes) -> None:
    def look() -> list[Any]:
        """Return a picture and the log."""
        return [TextBlock(text="short"), ImageBlock(image=png), TextBlock(text=log_text)]

    model = scripted(ask("look", "call_1"))
    asyncio.run(results(agent_of(FdstoreTools(store, process="p"), [look], model)))

    short, name, image, stub = model.requests[-1][-1].blocks
    assert short.text == "short"
    assert name.text.startswith('<fd_result fd="fd:1" ')
    assert image.resolve_image().read() == png
    assert stub.text.startswith('<fd_result fd="fd:2" ')
    assert store.process("p").read_bytes("fd:1") == png


def test_many_short_blocks_are_stored_together(store: Store) -> None:
    def many() -> list[Any]:
        """Return many blocks."""
        return [TextBlock(text=f"{number} " + "x" * 4700) for number in range(300)]

    [shown] = run(FdstoreTools(store), [many], scripted(ask("many", "call_1")))

    assert len(shown) < 10_000


def test_errors_and_short_results_stay_and_json_is_stored_as_such(store: Store) -> None:
    def fail() -> str:
        """Fail."""
        raise ValueError("exit code 2")

    def count() -> Any:
        """Count."""
        return {"lines": 3}

    def rows() -> Any:
        """Return rows."""
        return [{"row": number, "name": "x" * 20} for number in range(1000)]

    model = scripted(
        *(ask(name, f"call_{name}") for name in ("fail", "count", "rows")),
        ask("read_fd", "c", fd="fd:1#L2-4"),
    )

    failed, counted, stored, page = run(FdstoreTools(store), [fail, count, rows], model)

    assert failed == "exit code 2"
    assert counted == "{'lines': 3}"
    assert stored.startswith("<fd_result ")
    assert '"row": 0' in page


def test_the_caller_gets_what_a_direct_tool_returned(store: Store, read_log: Any, log_text: str) -> None:
    direct = FunctionTool.from_defaults(read_log, return_direct=True)
    agent = agent_of(FdstoreTools(store), [direct], scripted(ask("read_log", "call_1")))

    async def ended() -> str:
        return str(await agent.run("Go."))

    assert asyncio.run(ended()) == log_text


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


def test_a_failing_store_leaves_results_as_they_are_and_is_logged_once(
    failing_store: Store, read_log: Callable[[], str], log_text: str, caplog: pytest.LogCaptureFixture
) -> None:
    asks = ask("read_log", "call_1"), ask("read_log", "call_2"), ask("read_fd", "call_3", fd="fd:1")

    with caplog.at_level(logging.WARNING, "fdstore.integrations"):
        first, second, page = run(FdstoreTools(failing_store), [read_log], scripted(*asks))

    assert first == second == log_text
    assert page.startswith('<fd_error type="store_unavailable"')
    assert len([each for each in caplog.records if each.name == "fdstore.integrations"]) == 1


def test_the_example_runs(run_example: Callable[[str], str]) -> None:
    printed = run_example("llama_index")

    assert '<fd_result fd="fd:1"' in printed
    assert "\nline 900 of the build\n" in printed
    assert "line 500 " not in printed


def test_the_examples_of_the_docstrings_run(run_docstrings: Callable[[str], None]) -> None:
    run_docstrings("fdstore.integrations.llama_index")
