"""The capability and the overflow store in real agents of Pydantic AI, with its scripted `FunctionModel`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness.tool_output_limits import ToolOutputLimits

import fdstore
from fdstore.client import Store
from fdstore.integrations.pydantic_ai import FdstoreCapability, FdstoreOverflowStore
from fdstore.tools.catalogue import READING_TOOLS


class Script:
    """Calls tools in turn, and keeps what each request showed."""

    def __init__(self, *calls: ToolCallPart) -> None:
        self.calls = list(calls)
        self.requests: list[list[ModelMessage]] = []
        self.infos: list[AgentInfo] = []
        self.model = FunctionModel(self.answer)

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.requests.append(list(messages))
        self.infos.append(info)
        return ModelResponse([self.calls.pop(0)] if self.calls else [TextPart("Done.")])

    @property
    def last(self) -> list[Any]:
        """The parts of the last request."""
        return [part for message in self.requests[-1] for part in message.parts]

    @property
    def results(self) -> list[ToolReturnPart]:
        return [part for part in self.last if isinstance(part, ToolReturnPart)]

    @property
    def prompts(self) -> list[UserPromptPart]:
        return [part for part in self.last if isinstance(part, UserPromptPart)]


def ask(name: str, call_id: str, **arguments: Any) -> ToolCallPart:
    return ToolCallPart(name, arguments, call_id)


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_a_long_result_is_shown_as_its_descriptor_and_read_back_exactly(
    store: Store, log_text: str, awaited: bool
) -> None:
    script = Script(ask("read_log", "call_1"), ask("read_fd", "call_2", fd="fd:1#L4321"))
    agent = Agent(script.model, capabilities=[FdstoreCapability(store)])

    @agent.tool_plain
    def read_log() -> str:
        return log_text

    if awaited:
        asyncio.run(agent.run("What is in line 4321?", conversation_id="chat-7"))
    else:
        agent.run_sync("What is in line 4321?", conversation_id="chat-7")

    stub, page = script.results
    assert str(stub.content).startswith('<fd_result fd="fd:1" ')
    assert stub.metadata == {"fdstore": {"process": "chat-7", "fd": "fd:1"}}
    assert "\nline 4321 of the build\n" in str(page.content)
    assert "line 2500 of" not in str(script.requests)
    assert store.process("chat-7").read("fd:1", read_all=True).text == log_text


def test_the_tools_are_offered_with_their_instructions(store: Store) -> None:
    script = Script()
    agent = Agent(script.model, instructions="Be brief.", capabilities=[FdstoreCapability(store)])

    agent.run_sync("Hello")

    [info] = script.infos
    assert {tool.name for tool in info.function_tools} == {*READING_TOOLS}
    assert "Be brief." in str(info.instructions)
    assert "search_fd" in str(info.instructions)
    assert script.prompts[0].content == "Hello"
    assert store.trees() == []


def test_a_long_prompt_is_stored_once_and_a_later_run_of_the_conversation_reads_it(
    store: Store, log_text: str, png: bytes
) -> None:
    script = Script()
    agent = Agent(script.model, capabilities=[FdstoreCapability(store)])
    image = BinaryContent(png, media_type="image/png")

    first = agent.run_sync(["Why did it fail?", log_text, image])
    script.calls.append(ask("read_fd", "call_1", fd="fd:1#L2"))
    agent.run_sync("And line 2?", message_history=first.all_messages())

    question, stub, shown = script.prompts[0].content
    assert question == "Why did it fail?"
    assert str(stub).startswith('<fd_result fd="fd:1" ')
    assert shown == image
    assert "\nline 2 of the build\n" in str(script.results[0].content)
    [tree] = store.trees()
    assert [d.source for d in store.process(tree.id).list()] == ["user_input"]


def test_short_parts_of_a_prompt_that_are_long_together_are_stored_as_one(store: Store) -> None:
    script = Script()
    agent = Agent(script.model, capabilities=[FdstoreCapability(store)])
    half = "a line\n" * 700

    agent.run_sync(["Why?", half, half])

    [stub] = script.prompts[0].content
    assert str(stub).startswith('<fd_result fd="fd:1" ')
    [tree] = store.trees()
    assert store.process(tree.id).read("fd:1", read_all=True).text == f"Why?\n{half}\n{half}"


def test_images_stay_and_structured_results_are_stored_as_indented_json(store: Store, png: bytes) -> None:
    class Row(BaseModel):
        number: int

    image = BinaryContent(png, media_type="image/png")
    script = Script(ask("look", "call_1"), ask("rows", "call_2"), ask("few", "call_3"))
    agent = Agent(script.model, capabilities=[FdstoreCapability(store, process="chat")])
    agent.tool_plain(lambda: ["a short text", image], name="look")
    agent.tool_plain(
        lambda: ToolReturn([Row(number=n) for n in range(3000)], content="See.", metadata="mine"), name="rows"
    )
    agent.tool_plain(lambda: {"rows": 3}, name="few")

    agent.run_sync("Look.")

    look, rows, few = script.results
    text, name, shown = look.content
    assert text == "a short text"
    assert str(name).startswith('<fd_result fd="fd:1" ')
    assert shown == image
    assert store.process("chat").read_bytes("fd:1") == png
    assert str(rows.content).startswith('<fd_result fd="fd:2" ')
    assert rows.metadata == "mine"
    assert "See." in [prompt.content for prompt in script.prompts]
    assert '\n    "number": 2999\n' in store.process("chat").read("fd:2", read_all=True).text
    assert few.content == {"rows": 3}


def test_errors_stay_errors(store: Store) -> None:
    script = Script(ask("fail", "call_1"), *(ask("read_fd", f"call_{n}", fd="fd:9") for n in range(2, 6)))
    agent = Agent(script.model, capabilities=[FdstoreCapability(store)])

    @agent.tool_plain
    def fail() -> str:
        raise ToolFailed("exit code 2")

    agent.run_sync("Go.")

    failed, *refused = script.results
    assert (failed.outcome, failed.content) == ("failed", "exit code 2")
    assert {part.outcome for part in refused} == {"failed"}
    assert 'type="not_found"' in str(refused[0].content)


def test_our_tools_are_known_under_a_prefix_too(store: Store, log_text: str) -> None:
    store.process("chat").create(log_text)
    script = Script(ask("my_read_fd", "call_1", fd="fd:1", count=5))
    capability = FdstoreCapability(store, process="chat").prefix_tools("my")

    Agent(script.model, capabilities=[capability]).run_sync("Read.")

    assert str(script.results[0].content).startswith("<fd_content ")


def test_the_harness_keeps_spilled_results_in_the_overflow_store(store: Store, log_text: str) -> None:
    script = Script(ask("read_log", "call_1"))
    limits = ToolOutputLimits(store=FdstoreOverflowStore(store, process="spilled"))
    agent = Agent(script.model, capabilities=[limits])
    agent.tool_plain(lambda: log_text, name="read_log")

    agent.run_sync("Go.")
    [spilled] = store.process("spilled").list(prefix="")
    script.calls.append(ask("read_tool_result", "call_2", handle=spilled.fd, offset=4320, limit=1))
    agent.run_sync("Go on.")

    assert store.process("spilled").read(spilled.fd, read_all=True).text == log_text
    assert "line 4321 of the build" in str(script.results[-1].content)


def test_the_overflow_store_keeps_bytes_and_refuses_unknown_handles(store: Store, png: bytes) -> None:
    overflow = FdstoreOverflowStore(store, process="spilled")
    store.process("spilled").create("not of the harness")

    handles = [asyncio.run(overflow.write(key, png)) for key in ("run/call", "run/" + "x" * 2000, "run/a\nb")]

    assert [asyncio.run(overflow.read(handle)) for handle in handles] == [png] * 3
    for handle in ("fd:1", "name:unknown", "", "name:run/call#L1"):
        with pytest.raises(FileNotFoundError):
            asyncio.run(overflow.read(handle))


def test_a_full_overflow_store_lets_go_of_its_oldest_results(store: Store) -> None:
    overflow = FdstoreOverflowStore(store, limits=fdstore.TreeLimits(tree_fds=2), keep_s=0)

    async def written() -> list[str]:
        return [await overflow.write(f"call_{number}", b"x" * number) for number in range(1, 5)]

    first, *_, last = asyncio.run(written())

    with pytest.raises(FileNotFoundError):
        asyncio.run(overflow.read(first))
    assert asyncio.run(overflow.read(last)) == b"xxxx"


def test_the_overflow_store_fails_with_an_error_of_the_system(redis_url: str) -> None:
    with fdstore.connect(redis_url, looking=True) as read_only, pytest.raises(OSError):
        asyncio.run(FdstoreOverflowStore(read_only).write("run/call", b"text"))


def test_what_a_tool_adds_for_the_user_is_judged_with_its_result(store: Store, log_text: str) -> None:
    block = "x" * 4700
    script = Script(ask("one", "call_1"), ask("many", "call_2"), ask("short", "call_3"))
    agent = Agent(script.model, capabilities=[FdstoreCapability(store, process="p")])

    @agent.tool_plain
    def one() -> ToolReturn[str]:
        return ToolReturn("read", content=log_text)

    @agent.tool_plain
    def many() -> ToolReturn[str]:
        return ToolReturn("read", content=["a note", *[block] * 300])

    @agent.tool_plain
    def short() -> ToolReturn[str]:
        return ToolReturn("read", content="a note")

    agent.run_sync("Go.")

    assert len(str(script.last)) < 20_000
    assert [result.content for result in script.results][::2] == ["read", "read"]
    _, long, note = (part.content for part in script.prompts)
    assert long[0].startswith('<fd_result fd="fd:1" ')
    assert note == "a note"
    stored = [store.process("p").read(fd, read_all=True).text for fd in ("fd:1", "fd:2")]
    assert stored == [log_text, "\n".join(["read", "a note", *[block] * 300])]
