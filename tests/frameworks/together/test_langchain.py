"""The middleware in real agents of LangChain, with a scripted chat model that keeps what it was shown."""

from __future__ import annotations

import asyncio
import base64
import re
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

import fdstore
from fdstore.client import Store
from fdstore.errors import InvalidArgument
from fdstore.integrations.langchain import FdstoreMiddleware
from fdstore.tools.catalogue import READING_TOOLS
from tests import examples
from tests.frameworks.conformance.langchain import ScriptedChat


def ask(name: str, call_id: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])


def scripted(*turns: AIMessage) -> ScriptedChat:
    return ScriptedChat(responses=[*turns, AIMessage("Done.")])


def run(agent: Any, message: Any, *, awaited: bool = False, thread: str | None = None) -> list[BaseMessage]:
    """Run an agent on one message, and return its messages."""
    config = {"configurable": {"thread_id": thread}} if thread else {}
    given = {"messages": [{"role": "user", "content": message}]}
    if awaited:
        return asyncio.run(agent.ainvoke(given, config))["messages"]
    return agent.invoke(given, config)["messages"]


def results(messages: list[BaseMessage]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_a_long_result_is_shown_as_its_descriptor_and_read_back_exactly(
    store: Store, read_log: Any, log_text: str, awaited: bool
) -> None:
    model = scripted(ask("read_log", "call_1"), ask("read_fd", "call_2", fd="fd:1#L4321"))
    agent = create_agent(model, [read_log], middleware=[FdstoreMiddleware(store)])

    stub, page = results(run(agent, "What is in line 4321?", awaited=awaited, thread="chat-7"))

    assert stub.text.startswith('<fd_result fd="fd:1" ')
    assert "line 1 of the build" in stub.text
    assert stub.artifact == {"fdstore": {"process": "chat-7", "fd": "fd:1"}}
    assert "\nline 4321 of the build\n" in page.text
    assert not [m for request in model.requests for m in request if log_text[5000:6000] in m.text]
    assert store.process("chat-7").read("fd:1", read_all=True).text == log_text


def test_the_tools_are_offered_and_the_system_message_explains_them(store: Store, read_log: Any) -> None:
    model = scripted()
    agent = create_agent(model, [read_log], system_prompt="Be brief.", middleware=[FdstoreMiddleware(store)])

    run(agent, "Hello")

    [[system, user]] = model.requests
    assert {each.name for each in model.offered} == {"read_log", *READING_TOOLS}
    assert system.text.startswith("Be brief.")
    assert "search_fd" in system.text
    assert user.text == "Hello"


def test_a_blocking_run_without_a_descriptor_has_the_other_tools_alone(store: Store) -> None:
    web_search = {"type": "web_search"}
    for tools in ([web_search], []):
        model = scripted()
        middleware = FdstoreMiddleware(store, hold_back=True)
        agent = create_agent(model, tools, system_prompt="Be brief.", middleware=[middleware])

        run(agent, "Hello")

        assert model.offered == tools
        assert model.requests[0][0].text == "Be brief."


def test_a_store_of_asyncio_is_refused_in_a_blocking_run(redis_url: str) -> None:
    store = asyncio.run(fdstore.aio.connect(redis_url))
    agent = create_agent(scripted(), middleware=[FdstoreMiddleware(store)])

    with pytest.raises(InvalidArgument, match="of asyncio"):
        run(agent, "Hello")


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_a_long_message_of_the_user_is_stored_once_in_a_thread(
    store: Store, log_text: str, awaited: bool
) -> None:
    model = scripted()
    agent = create_agent(model, middleware=[FdstoreMiddleware(store)], checkpointer=InMemorySaver())

    run(agent, ["Why did it fail?", {"type": "text", "text": log_text}], awaited=awaited, thread="T 1")
    messages = run(agent, "And now?", awaited=awaited, thread="T 1")

    question, stub = messages[0].content
    assert question == {"type": "text", "text": "Why did it fail?"}
    assert stub["text"].startswith('<fd_result fd="fd:1" ')
    [tree] = store.trees()
    assert tree.id.startswith("t-1-")
    assert [d.fd for d in store.process(tree.id).list()] == ["fd:1"]


def test_images_stay_beside_texts_that_are_stored(store: Store, log_text: str, png: bytes) -> None:
    image = {"type": "image", "base64": base64.b64encode(png).decode(), "mime_type": "image/png"}

    @tool
    def look() -> list[Any]:
        """Return a picture and the log."""
        return [
            {"type": "text", "text": "short"},
            image,
            {"type": "text", "text": log_text},
            {"type": "file", "file_id": "a1"},
        ]

    agent = create_agent(scripted(ask("look", "call_1")), [look], middleware=[FdstoreMiddleware(store)])

    [message] = results(run(agent, "Look.", thread="chat"))

    short, name, shown, stub, file = message.content
    assert short["text"] == "short"
    assert name["text"].startswith('<fd_result fd="fd:1" ')
    assert shown == image
    assert stub["text"].startswith('<fd_result fd="fd:2" ')
    assert file == {"type": "file", "file_id": "a1"}
    assert store.process("chat").read_bytes("fd:1") == png


def test_an_error_stays_an_error_and_a_short_result_stays_as_it_is(store: Store, log_text: str) -> None:
    @tool
    def fail() -> str:
        """Fail."""
        raise ToolException("exit code 2\n" + log_text)

    @tool(response_format="content_and_artifact")
    def count() -> tuple[str, int]:
        """Count."""
        return "3 lines", 3

    fail.handle_tool_error = True
    model = scripted(ask("fail", "call_1"), ask("count", "call_2"), ask("read_fd", "call_3", fd="fd:9"))
    agent = create_agent(model, [fail, count], middleware=[FdstoreMiddleware(store)])

    failed, counted, refused = results(run(agent, "Go."))

    assert failed.status == "error"
    assert failed.text.startswith("<fd_result ")
    assert "exit code 2" in failed.text
    assert (counted.content, counted.artifact, counted.status) == ("3 lines", 3, "success")
    assert refused.status == "error"
    assert refused.text.startswith('<fd_error type="not_found"')


def test_a_result_in_a_command_is_stored_too(store: Store, log_text: str) -> None:
    @tool
    def read_log() -> Command[Any]:
        """Return the log of the build."""
        return Command(update={"messages": [ToolMessage(log_text, tool_call_id="call_1")]})

    agent = create_agent(
        scripted(ask("read_log", "call_1")), [read_log], middleware=[FdstoreMiddleware(store)]
    )

    [message] = results(run(agent, "Go."))

    assert message.text.startswith("<fd_result ")


def test_a_repeated_call_stores_its_result_once_and_another_result_is_stored_too(
    store: Store, read_log: Any
) -> None:
    @tool
    def count_up() -> str:
        """Return a long text, another one each time."""
        texts.append("number\n" * (2000 + len(texts)))
        return texts[-1]

    texts: list[str] = []
    model = scripted(
        *(ask("read_log", "call_1") for _ in range(2)), *(ask("count_up", "call_2") for _ in range(2))
    )
    agent = create_agent(model, [read_log, count_up], middleware=[FdstoreMiddleware(store, process="chat")])

    messages = results(run(agent, "Go."))

    first, again, other, another = [message.artifact["fdstore"]["fd"] for message in messages]

    assert first == again == "fd:1"
    assert other != another
    assert store.process("chat").read(another, read_all=True).text == texts[1]


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_an_agent_in_a_tool_shares_the_process_of_its_run(store: Store, read_log: Any, awaited: bool) -> None:
    """An id that the inner agent returns works in the outer one, and means the same text."""
    middleware = [FdstoreMiddleware(store)]
    inner = create_agent(
        ScriptedChat(responses=[ask("read_log", "call_i"), AIMessage("It is fd:1.")]),
        [read_log],
        middleware=middleware,
    )

    async def ask_reader() -> str:
        """Ask the reader."""
        return str((await inner.ainvoke({"messages": [("user", "Go.")]}))["messages"][-1].text)

    def ask_reader_blocking() -> str:
        """Ask the reader."""
        return str(inner.invoke({"messages": [("user", "Go.")]})["messages"][-1].text)

    asked = tool("ask_reader")(ask_reader if awaited else ask_reader_blocking)
    model = scripted(
        ask("ask_reader", "call_1"), ask("read_log", "call_2"), ask("read_fd", "call_3", fd="fd:1#L9")
    )
    outer = create_agent(model, [asked, read_log], middleware=middleware)

    said, stored, page = results(run(outer, "Go.", awaited=awaited))

    assert said.text == "It is fd:1."
    assert stored.text.startswith('<fd_result fd="fd:2" ')
    assert "\nline 9 of the build\n" in page.text
    assert len(store.trees()) == 1


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_a_graph_of_ones_own_needs_no_thread(store: Store, read_log: Any, awaited: bool) -> None:
    """Two calls of its first turn share a process, which the next turns find; another run has its own."""
    middleware = FdstoreMiddleware(store)
    both = ask("read_log", "call_1")
    both.tool_calls.append({"name": "read_log", "args": {}, "id": "call_2", "type": "tool_call"})
    last = ask("read_fd", "call_3", fd="fd:2#L9")
    tools = [tool(read_log), *middleware.tools]
    node = ToolNode(
        tools, wrap_tool_call=middleware.wrap_tool_call, awrap_tool_call=middleware.awrap_tool_call
    )

    def ended() -> list[ToolMessage]:
        model = scripted(both, last)
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"]).model_copy()]})
        graph.add_node("tools", node)
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        given = {"messages": [("user", "Go.")]}
        compiled = graph.compile()
        state = asyncio.run(compiled.ainvoke(given)) if awaited else compiled.invoke(given)
        return results(state["messages"])

    for _ in range(2):
        first, second, page = ended()
        assert {first.text.split()[1], second.text.split()[1]} == {'fd="fd:1"', 'fd="fd:2"'}
        assert "\nline 9 of the build\n" in page.text
    assert len(store.trees()) == 2


def test_an_artifact_in_the_messages_of_a_graph_opens_no_named_process(
    store: Store, read_log: Any, log_text: str
) -> None:
    """Clients may send messages, and could name another user's process in one."""
    store.process("alice").create(log_text)
    middleware = FdstoreMiddleware(store)
    sent = [
        HumanMessage("Go."),
        ask("read_log", "call_0"),
        ToolMessage("x", tool_call_id="call_0", artifact={"fdstore": {"process": "alice", "fd": "fd:1"}}),
        ask("list_fds", "call_1"),
    ]
    node = ToolNode([tool(read_log), *middleware.tools], wrap_tool_call=middleware.wrap_tool_call)
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()

    listed = graph.invoke({"messages": sent})["messages"][-1]

    assert 'count="0"' in listed.text


def test_the_graph_of_the_page_runs(redis_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = examples.ROOT / "docs" / "how-to" / "frameworks" / "langchain.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)

    exec("\n".join(blocks), {})

    assert len(blocks) == 2
    assert capsys.readouterr().out.endswith(
        '<fd_result fd="fd:1" pages="6" truncated="false" lines="1-18\nDone.\n'
    )


def test_the_checkpoints_of_the_page_are_small(redis_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = examples.ROOT / "docs" / "how-to" / "frameworks" / "langgraph-checkpoints.md"
    [block] = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)

    exec(block, {})

    assert capsys.readouterr().out == "True True\n"
