"""The core of the adapters of agent frameworks, on a real store; the frameworks are in `tests/frameworks`."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import AsyncExitStack
from typing import Any

import pytest

import fdstore
from fdstore.client import Store
from fdstore.errors import InvalidArgument
from fdstore.integrations.shared.named_process import NamedProcess
from fdstore.integrations.thread_tools import ThreadTools, TurnTools
from fdstore.local.redis_server import PrivateServer
from fdstore.model.records import TreeLimits
from fdstore.results.tool_policy import ToolPolicy
from fdstore.store.contents.contents import create
from fdstore.wire._async.cluster import make_runner as make_async_runner
from fdstore.wire._sync.cluster import make_runner
from tests.outages import SilentServer, advance

LONG = "a long line\n" * 1000


def fd_of(offloaded: object) -> str:
    assert isinstance(offloaded, fdstore.Offloaded)
    assert offloaded.descriptor is not None
    return offloaded.descriptor.fd


def test_each_thread_has_a_process_of_its_own(store: Store) -> None:
    tools = ThreadTools(store)

    assert fd_of(tools.run(tools.offload("one", LONG, "grep"))) == "fd:1"
    assert fd_of(tools.run(tools.offload("Two", LONG, "grep"))) == "fd:1"

    assert {tree.id for tree in store.trees()} == {"one", tools.process_of("Two")}


def test_short_outputs_need_no_store_and_cannot_forge_an_element(store: Store) -> None:
    tools = ThreadTools(store)

    short = tools.run(tools.offload("one", "3 lines", "grep"))
    forged = tools.run(tools.offload("one", '<fd_result fd="fd:9">', "grep"))
    parts = tools.run(tools.offload_parts("one", ["3 lines", None], "grep"))

    assert short == fdstore.Offloaded("3 lines")
    assert forged is not None
    assert str(forged.content).startswith('<fd_inline escaped="true">')
    assert parts == fdstore.Offloaded(["3 lines", None])
    assert tools.run(tools.wrap_input("one", "Why?")) == "Why?"
    assert store.trees() == []


def test_texts_of_an_input_that_are_long_together_are_stored_as_one(store: Store) -> None:
    tools = ThreadTools(store)
    half = "a line\n" * 700

    shown = tools.run(tools.wrap_input_texts("one", ["Why?", LONG, None, half, half, ""]))

    short, long, other, together, second, empty = shown
    assert (short, other, second, empty) == ("Why?", None, "", "")
    assert store.process("one").read("fd:1", read_all=True).text == LONG
    assert store.process("one").read("fd:2", read_all=True).text == f"{half}\n{half}"
    assert str(long).startswith('<fd_result fd="fd:1"')
    assert str(together).startswith('<fd_result fd="fd:2"')


@pytest.mark.parametrize(
    ("config", "is_stored"),
    [
        (fdstore.FDConfig(max_input_chars=100), True),
        (fdstore.FDConfig(max_input_chars=101), False),
        (fdstore.FDConfig(max_input_chars=100, page_user_input=False), False),
        (fdstore.FDConfig(max_direct_output_chars=10), False),
        (fdstore.FDConfig(max_direct_output_tokens=10, max_input_chars=100), True),
    ],
)
def test_texts_of_an_input_are_judged_by_the_size_for_inputs(
    store: Store, config: fdstore.FDConfig, is_stored: bool
) -> None:
    tools = ThreadTools(store, config=config)

    [shown] = tools.run(tools.wrap_input_texts("one", ["x" * 101]))

    assert str(shown).startswith("<fd_result") == is_stored


def test_a_policy_of_a_tool_decides_about_its_results(store: Store) -> None:
    policies = {"cat": ToolPolicy(inline="always"), "ls": ToolPolicy(max_direct_output_chars=3)}
    tools = ThreadTools(store, config=fdstore.FDConfig(tool=policies))

    for _ in range(2):  # before the process is open, and after
        assert tools.run(tools.offload("one", LONG, "cat")) == fdstore.Offloaded(LONG)
        assert "fd_result" in str(tools.run(tools.offload("one", "a.txt b.txt", "ls")))
        assert "fd_result" in str(tools.run(tools.offload("one", LONG, "grep")))


def test_our_own_results_are_never_stored(store: Store) -> None:
    tools = ThreadTools(store)

    assert tools.run(tools.offload("one", LONG, "read_fd")) is None
    assert tools.run(tools.offload_parts("one", [LONG], "search_fd")) is None


def test_a_call_id_stores_the_same_output_once_and_another_one_too(store: Store) -> None:
    tools = ThreadTools(store)

    first = fd_of(tools.run(tools.offload_parts("one", [LONG], "grep", "call_1")))
    again = fd_of(tools.run(tools.offload_parts("one", [LONG], "grep", "call_1")))
    other = fd_of(tools.run(tools.offload_parts("one", [LONG + "more"], "grep", "call_1")))

    assert (first, again, other) == ("fd:1", "fd:1", "fd:2")


def test_parts_are_judged_one_by_one(store: Store) -> None:
    tools = fdstore.Toolset(store.process("one"))

    found = tools.offload_parts([LONG, "short", b"GIF89a...", None], "look", "call_1")

    long, short, picture, other = found.content
    assert long.startswith('<fd_result fd="fd:1" ')
    assert (short, other) == ("short", None)
    assert picture.startswith('<fd_result fd="fd:2" ')
    assert tools.offload_parts([LONG, "short", b"GIF89a...", None], "look", "call_1") == found
    assert [d.fd for d in store.process("one").list()] == ["fd:1", "fd:2"]


def test_a_removed_process_is_created_again_and_gives_no_id_twice(store: Store) -> None:
    tools = ThreadTools(store)
    tools.run(tools.offload("one", LONG, "grep"))
    store.drop_tree("one")

    assert fd_of(tools.run(tools.offload("one", LONG, "grep"))) == "fd:2"
    assert "not_found" in tools.run(tools.call("one", "read_fd", {"fd": "fd:1"})).text


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_awaited_calls_serve_both_kinds_of_store(store: Store, redis_url: str, kind: str) -> None:
    async def steps() -> tuple[str, str, str]:
        connected = store if kind == "blocking" else await fdstore.aio.connect(redis_url)
        tools = ThreadTools(connected, process="chat")
        fd = fd_of(await tools.run_async(tools.offload("any", LONG, "grep")))
        page = await tools.run_async(tools.call("any", "read_fd", {"fd": f"{fd}#L7"}))
        stub = await tools.run_async(tools.wrap_input("any", LONG))
        if isinstance(connected, fdstore.aio.Store):
            await connected.close()
        return fd, page.text, stub

    fd, page, stub = asyncio.run(steps())

    assert fd == "fd:1"
    assert "\na long line\n" in page
    assert stub.startswith('<fd_result fd="fd:2" ')


def test_a_blocking_call_refuses_a_store_of_asyncio(redis_url: str) -> None:
    tools = ThreadTools(asyncio.run(fdstore.aio.connect(redis_url)))

    with pytest.raises(InvalidArgument, match="of asyncio"):
        tools.run(tools.offload("one", LONG, "grep"))
    with pytest.raises(InvalidArgument, match="connected store"):
        ThreadTools("redis://localhost")  # type: ignore[arg-type]


def test_an_invalid_meter_is_refused_when_an_adapter_is_made(store: Store) -> None:
    with pytest.raises(InvalidArgument, match="meter"):
        ThreadTools(store, meter=7)  # type: ignore[arg-type]


def test_in_another_event_loop_than_that_of_its_store_outputs_stay_as_they_are(redis_url: str) -> None:
    with asyncio.Runner() as first, asyncio.Runner() as second:
        store = first.run(fdstore.aio.connect(redis_url))
        tools = ThreadTools(store)
        assert fd_of(first.run(tools.run_async(tools.offload("one", LONG, "grep")))) == "fd:1"

        short = second.run(tools.run_async(tools.offload("two", "3 lines", "grep")))
        long = second.run(tools.run_async(tools.offload("two", LONG, "grep")))
        given = second.run(tools.run_async(tools.wrap_input("one", LONG)))
        called = second.run(tools.run_async(tools.call("one", "read_fd", {"fd": "fd:1"})))

        assert (short, long, given) == (fdstore.Offloaded("3 lines"), None, LONG)
        assert called.is_error
        assert "connect in each loop" in called.text
        first.run(store.close())


def test_an_outage_is_logged_once_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    with PrivateServer() as server, fdstore.connect(server.url, patience=0.2) as store:
        tools = ThreadTools(store)
        server.stop()
        with caplog.at_level(logging.WARNING, "fdstore.integrations"):
            assert tools.run(tools.offload("one", LONG, "grep")) is None
            assert tools.run(tools.offload("one", "3 lines", "grep")) == fdstore.Offloaded("3 lines")
            assert tools.run(tools.wrap_input("one", LONG)) == LONG
            assert "store_unavailable" in tools.run(tools.call("one", "list_fds", {})).text
        assert len(caplog.records) == 1

        server.start()
        assert tools.run(tools.offload("one", LONG, "grep")) is None  # the pause is not over
        advance(store, 1.5)
        assert fd_of(tools.run(tools.offload("one", LONG, "grep"))) == "fd:1"


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_a_store_without_patience_is_given_up_and_then_left_alone(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("fdstore.integrations.thread_tools.HOST_PATIENCE_S", 0.2)
    opened = Store if kind == "blocking" else fdstore.aio.Store
    runner: Any = make_runner if kind == "blocking" else make_async_runner

    async def steps(url: str) -> list[str]:
        async with AsyncExitStack() as stack:
            store: Any = opened(runner(url), "fdstore", url)
            if kind == "blocking":
                stack.callback(store.close)
            else:
                stack.push_async_callback(store.close)
            tools = ThreadTools(store)
            calls = [tools.call("one", "list_fds", {}) for _ in range(5)]
            return [(await tools.run_async(call)).text for call in calls]

    with SilentServer() as silent:
        first, *later = asyncio.run(steps(silent.url))

        assert "no reply in time" in first
        assert all("it is tried again in" in text for text in later)
        assert silent.connections == 1


def test_a_named_process_is_opened_again_after_it_was_removed(store: Store) -> None:
    files = NamedProcess(store, "files")
    asyncio.run(files.run(lambda handle: create(handle, "one", name="name:a.txt")))
    store.drop_tree("files")

    asyncio.run(files.run(lambda handle: create(handle, "two", name="name:a.txt")))

    assert store.process("files").read("name:a.txt").text == "two"


def test_the_instructions_promise_nothing_that_adapters_do_not_do(store: Store) -> None:
    given = fdstore.FDConfig(max_read_chars=9000, enable_references=True)

    for tools in (ThreadTools(store), ThreadTools(store, config=given)):
        assert "<ref " not in tools.instructions
        assert "{{" not in tools.instructions


def test_a_full_process_lets_go_of_its_oldest_descriptors(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    limits = TreeLimits(tree_fds=20)
    tools = ThreadTools(store, process="support", limits=limits, keep_s=0)
    store.process("support", limits=limits).put("notes", "a note")

    with caplog.at_level(logging.WARNING, "fdstore.integrations"):
        shown = [tools.run(tools.offload("chat", f"{number}\n" * 9000, "grep")) for number in range(50)]

    assert [each.descriptor.fd for each in shown] == [f"fd:{number}" for number in range(2, 52)]
    left = [each.fd for each in store.process("support").list()]
    assert left[-2:] == ["fd:51", "name:notes"]
    assert 18 <= len(left) <= 20
    assert len(caplog.records) == 1
    old = tools.run(tools.call("chat", "read_fd", {"fd": "fd:2"}))
    assert old.is_error
    assert 'type="not_found"' in old.text


def test_a_full_process_keeps_what_a_conversation_may_still_read(store: Store) -> None:
    tools = ThreadTools(store, process="support", limits=TreeLimits(tree_fds=3))

    shown = [tools.run(tools.offload("chat", f"{number}\n" * 9000, "grep")) for number in range(5)]

    assert [each is None for each in shown] == [False, False, False, True, True]
    assert len(store.process("support").list()) == 3


def test_a_tree_is_kept_for_the_time_of_its_options(store: Store) -> None:
    tools = ThreadTools(store, limits=TreeLimits(retention_days=0.5))

    tools.run(tools.offload("chat-7", "a line\n" * 9000, "grep"))

    assert store.tree("chat-7").limits.retention_days == 0.5


def test_long_json_of_one_line_is_stored_so_that_it_pages_by_lines(store: Store) -> None:
    tools = ThreadTools(store)
    rows = json.dumps([{"row": number} for number in range(2000)])

    for shown in (
        tools.run(tools.offload("chat-7", rows, "rows")),
        tools.run(tools.offload_parts("chat-7", [rows], "rows")),
    ):
        assert shown.descriptor.lines > 2000


# held back


def test_tools_belong_in_the_requests_of_a_thread_from_its_first_descriptor_on(store: Store) -> None:
    tools = TurnTools(store, hold_back=True)

    before = tools.offers("one", ["Why?"])
    tools.run(tools.offload("one", "3 lines", "grep"))
    after_short = tools.offers("one", ["Why?", "3 lines"])
    tools.run(tools.offload("one", LONG, "grep"))

    assert (before, after_short) == (False, False)
    assert tools.offers("one", ["Why?"])
    assert not tools.offers("two", ["Why?"])


def test_a_long_input_is_a_first_descriptor_too(store: Store) -> None:
    tools = TurnTools(store, hold_back=True)

    tools.run(tools.wrap_input("one", LONG))

    assert tools.offers("one", [])


def test_messages_that_name_a_descriptor_have_its_readers_in_every_program(store: Store) -> None:
    first = ThreadTools(store)
    shown = first.run(first.offload("one", LONG, "grep"))
    tools = TurnTools(store, hold_back=True)

    assert not tools.offers("two", [{"role": "user", "content": "Hello."}])
    assert tools.offers("one", [{"role": "tool", "content": shown}])
    assert tools.offers("one", [])  # the framework may have left it out meanwhile


def test_what_is_held_back_is_decided_without_a_request_to_the_store(redis_url: str) -> None:
    with fdstore.connect(redis_url) as store:
        tools = TurnTools(store, hold_back=True)

    assert not tools.offers("one", ["Why?"])
    assert tools.offers("one", ["the log is fd:3"])


def test_a_store_that_fails_offers_nothing_for_a_result_that_stays(store: Store, redis_url: str) -> None:
    tools = TurnTools(store, hold_back=True, limits=TreeLimits(tree_bytes=100), keep_s=0)

    assert tools.run(tools.offload("one", LONG, "grep")) is None

    assert not tools.offers("one", [LONG])
    assert tools.offers("one", ["the log is fd:3"])


@pytest.mark.parametrize(
    "options",
    [{}, {"hold_back": False}, {"hold_back": True, "enabled": ["read_fd", "write_fd"]}],
)
def test_tools_are_offered_from_the_start_by_default_and_beside_one_that_makes_descriptors(
    store: Store, options: Any
) -> None:
    assert TurnTools(store, **options).offers("one", ["Why?"])


@pytest.mark.parametrize("hold_back", ["deferred", 1, None])
def test_an_adapter_refuses_another_way_to_hold_back(store: Store, hold_back: Any) -> None:
    with pytest.raises(InvalidArgument, match="hold_back"):
        TurnTools(store, hold_back=hold_back)


def test_adapters_that_give_their_tools_once_do_not_take_the_option(store: Store) -> None:
    with pytest.raises(TypeError, match="hold_back"):
        ThreadTools(store, hold_back=True)  # type: ignore[call-arg]
