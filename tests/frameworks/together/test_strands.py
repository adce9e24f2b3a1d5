"""The plugin and the storage in real agents of Strands, with a model that keeps what it was shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from strands import Agent, tool
from strands.models import Model
from strands.multiagent import Swarm
from strands.session import FileSessionManager, SnapshotSessionManager
from strands.storage import Storage
from strands.types.exceptions import StorageError
from strands.vended_plugins.context_offloader import ContextOffloader

import fdstore
from fdstore.client import Store
from fdstore.integrations.strands import FdstorePlugin, FdstoreStorage
from fdstore.tools.catalogue import READING_TOOLS
from tests.frameworks.conformance.driver import Call
from tests.frameworks.conformance.strands import Scripted


def ask(name: str, call_id: str, **arguments: Any) -> list[tuple[str, Call]]:
    return [(call_id, Call(name, arguments))]


def made(function: Callable[[], Any], name: str) -> Any:
    """A tool of a function."""
    return tool(function, name=name, description=name)


def agent_of(model: Model, *tools: Any, **options: Any) -> Agent:
    return Agent(model, tools=list(tools), callback_handler=None, **options)


def results(agent: Agent) -> list[Any]:
    return [b["toolResult"] for m in agent.messages for b in m["content"] if "toolResult" in b]


def text_of(result: Any) -> str:
    return "\n".join(block["text"] for block in result["content"] if "text" in block)


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_a_long_result_is_shown_as_its_descriptor_and_read_back_exactly(
    store: Store, log_text: str, awaited: bool
) -> None:
    model = Scripted(ask("read_log", "call_1"), ask("read_fd", "call_2", fd="fd:1#L4321"))
    agent = agent_of(model, made(lambda: log_text, "read_log"), plugins=[FdstorePlugin(store)])

    if awaited:
        asyncio.run(agent.invoke_async("What is in line 4321?"))
    else:
        agent("What is in line 4321?")

    stub, page = results(agent)
    assert text_of(stub).startswith('<fd_result fd="fd:1" ')
    assert "\nline 4321 of the build\n" in text_of(page)
    assert not [request for request in model.requests if "line 2500 of" in request["seen"]]
    [tree] = store.trees()
    assert tree.id == agent.state.get("fdstore_thread")
    assert store.process(tree.id).read("fd:1", read_all=True).text == log_text


def test_the_tools_are_offered_and_the_system_prompt_explains_them(store: Store) -> None:
    model = Scripted()
    agent = agent_of(model, plugins=[FdstorePlugin(store)], system_prompt="Be brief.")

    agent("Hello")

    [request] = model.requests
    assert {spec["name"] for spec in request["tools"]} == {*READING_TOOLS}
    assert str(request["system"]).index("Be brief.") < str(request["system"]).index("search_fd")
    assert agent.system_prompt == "Be brief."
    assert agent.messages[0]["content"] == [{"text": "Hello"}]
    assert store.trees() == []


def test_a_long_prompt_is_stored_and_a_restored_session_reads_it(
    store: Store, log_text: str, png: bytes, tmp_path: Path
) -> None:
    def agent(*calls: Any) -> Agent:
        sessions = FileSessionManager("shop-7", storage_dir=str(tmp_path))
        return agent_of(
            Scripted(*calls), plugins=[FdstorePlugin(store)], session_manager=sessions, agent_id="a"
        )

    image = {"image": {"format": "png", "source": {"bytes": png}}}
    first = agent()
    first([{"text": "Why did it fail?"}, {"text": log_text}, image])
    second = agent(ask("read_fd", "call_1", fd="fd:1#L2"))
    second("And line 2?")

    question, stub, shown = first.messages[0]["content"]
    assert question == {"text": "Why did it fail?"}
    assert stub["text"].startswith('<fd_result fd="fd:1" ')
    assert shown == image
    assert "\nline 2 of the build\n" in text_of(results(second)[0])
    [tree] = store.trees()
    assert tree.id.startswith("shop-7-")


def test_images_stay_and_json_results_are_stored_indented(store: Store, png: bytes) -> None:
    image = {"image": {"format": "png", "source": {"bytes": png}}}
    rows = {"json": [{"number": n} for n in range(3000)]}
    few = {"json": {"rows": 3}}
    model = Scripted(ask("look", "call_1"))
    look = made(lambda: {"status": "success", "content": [{"text": "short"}, image, rows, few]}, "look")
    agent = agent_of(model, look, plugins=[FdstorePlugin(store, process="chat")])

    agent("Look.")

    short, name, shown, stub, inline = results(agent)[0]["content"]
    assert short == {"text": "short"}
    assert name["text"].startswith('<fd_result fd="fd:1" ')
    assert shown == image
    assert stub["text"].startswith('<fd_result fd="fd:2" ')
    assert inline == few
    assert store.process("chat").read_bytes("fd:1") == png
    assert '\n    "number": 2999\n' in store.process("chat").read("fd:2", read_all=True).text


def test_errors_stay_errors(store: Store, log_text: str) -> None:
    def fail() -> str:
        raise ValueError("exit code 2\n" + log_text)

    model = Scripted(ask("fail", "call_1"), ask("read_fd", "call_2", fd="fd:9"))
    agent = agent_of(model, made(fail, "fail"), plugins=[FdstorePlugin(store)])

    agent("Go.")

    failed, refused = results(agent)
    assert failed["status"] == "error"
    assert text_of(failed).startswith("<fd_result ")
    assert "exit code 2" in text_of(failed)
    assert refused["status"] == "error"
    assert 'type="not_found"' in text_of(refused)


def test_the_storage_keeps_what_it_was_given(store: Store, png: bytes) -> None:
    storage = FdstoreStorage(store, process="kept")
    contents = {
        "a/text": "häh?\r\n".encode(),
        "a/empty": b"",
        "a/picture": png,
        "a/framed-text": b"\x00\x0atext/plain" + b"line 1\n",
        "a/framed-picture": b"\x00\x09image/png" + png,
        "b/looks-framed": b"\x00\x0aText/Plain and more",
        "b/short": b"\x00",
    }

    async def round_trip() -> dict[str, bytes | None]:
        for key, data in contents.items():
            await storage.write(key, data)
        return {key: await storage.read(key) for key in contents}

    assert asyncio.run(round_trip()) == contents
    assert isinstance(storage, Storage)
    kept = store.process("kept")
    assert kept.read("name:a/framed-text").text == "line 1\n"
    assert kept.stat("name:a/framed-picture").media_type == "image/png"
    assert asyncio.run(storage.list("a/")) == sorted(key for key in contents if key.startswith("a/"))
    assert len(asyncio.run(storage.list(""))) == len(contents)
    assert [found.key for found in asyncio.run(storage.search("häh"))] == ["a/text"]


def test_the_storage_replaces_and_deletes(store: Store, redis_url: str) -> None:
    storage = FdstoreStorage(store, process="kept")

    async def steps() -> tuple[bytes | None, bytes | None]:
        await storage.write("key", b"old")
        await storage.write("key", b"new")
        before = await storage.read("key")
        await storage.delete("key")
        await storage.delete("key")
        return before, await storage.read("key")

    assert asyncio.run(steps()) == (b"new", None)
    with pytest.raises(StorageError):
        asyncio.run(storage.write("", b"text"))
    with fdstore.connect(redis_url, looking=True) as read_only, pytest.raises(StorageError):
        asyncio.run(FdstoreStorage(read_only, process="kept").write("key", b"text"))


def test_a_full_storage_keeps_its_files_and_says_that_it_is_full(store: Store) -> None:
    storage = FdstoreStorage(store, limits=fdstore.TreeLimits(tree_fds=2))

    async def write(count: int) -> None:
        for number in range(count):
            await storage.write(f"notes/{number}", b"x")

    with pytest.raises(StorageError, match="tree_fds"):
        asyncio.run(write(3))
    assert asyncio.run(storage.list("notes/")) == ["notes/0", "notes/1"]


def test_sessions_and_offloaded_results_of_strands_live_in_the_storage(store: Store, log_text: str) -> None:
    storage = FdstoreStorage(store, process="kept")

    def agent(*calls: Any) -> Agent:
        return agent_of(
            Scripted(*calls),
            made(lambda: log_text, "read_log"),
            storage=storage,
            session_manager=SnapshotSessionManager("shop-7"),
            plugins=[ContextOffloader(evict_after_cycles=None)],
            agent_id="a",
        )

    agent(ask("read_log", "call_1"))("Go.")
    second = agent(
        ask(
            "retrieve_offloaded_content",
            "call_2",
            reference="call_1_0",
            pattern="line 4321 ",
            context_lines=0,
        )
    )
    second("And line 4321?")

    assert "Offloaded" in text_of(results(second)[0])
    assert "line 4321 of the build" in text_of(results(second)[1])
    names = [d.fd for d in store.process("kept").list(prefix="")]
    assert any("offloader/call_1_0" in name for name in names)
    assert any("shop-7" in name for name in names)


def test_agents_of_a_swarm_with_one_process_read_what_the_others_stored(store: Store, log_text: str) -> None:
    log = made(lambda: log_text, "read_log")
    handed = {"agent_name": "second", "message": "The log is fd:1."}
    first = agent_of(
        Scripted(ask("read_log", "call_1"), ask("handoff_to_agent", "call_2", **handed)),
        log,
        plugins=[FdstorePlugin(store, process="swarm")],
        name="first",
    )
    second_model = Scripted(ask("read_fd", "call_3", fd="fd:1#L9"))
    second = agent_of(second_model, plugins=[FdstorePlugin(store, process="swarm")], name="second")

    Swarm([first, second])("Go.")

    assert "\nline 9 of the build\n" in second_model.requests[-1]["seen"].replace("\\n", "\n")


class Stateful(Scripted):
    """A model that keeps the history itself."""

    @property
    def stateful(self) -> bool:
        return True


def test_nothing_is_held_back_of_a_model_that_keeps_the_history_itself(store: Store) -> None:
    model = Stateful()
    agent = agent_of(model, plugins=[FdstorePlugin(store, hold_back=True)])

    agent("Go.")

    [request] = model.requests
    assert "read_fd" in [each["name"] for each in request["tools"]]
    assert "# Large texts" in str(request["system"])
