"""The cases that every adapter of a conversation must pass, each written once for all of them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import fdstore
import fdstore.aio
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.tools.catalogue import READING_TOOLS
from tests.frameworks.conformance.driver import Call, Driver, Function, Ran

CASES: dict[str, Case] = {}
"""By the name that the table shows."""


class World:
    """The world of a case: an adapter, a store on a server of its own, and the results of its functions.

    text     5000 lines, with all that an encoding could lose
    png      an image of 1 x 1 pixels
    """

    def __init__(self, driver: type[Driver], server: PrivateServer, store: Store, png: bytes) -> None:
        self.driver, self.server, self.store, self.png = driver, server, store, png
        self.text = (
            "".join(f"line {n} of the build\n" for n in range(1, 5001)) + "é\t🦊\r\n\x0b\u2028 end  \n\n"
        )

    def talk(self, *functions: Function, **options: Any) -> Driver:
        """Return a new conversation."""
        return self.driver(options.pop("store", self.store), functions, **options)

    def read_log(self, **options: Any) -> Function:
        return Function("read_log", lambda: self.text, **options)

    def stored(self, kind: str = "text") -> list[Any]:
        """Return all texts, or all "bytes", of all processes, oldest first in each."""
        found: list[Any] = []
        for tree in self.store.trees():
            process = self.store.process(tree.id)
            fds = [each.fd for each in process.list() if each.kind == kind]
            if kind == "text":
                found += [process.read(fd, read_all=True).text for fd in fds]
            else:
                found += map(process.read_bytes, fds)
        return found


Case = Callable[[World], Awaitable[None]]


def case(name: str) -> Callable[[Case], Case]:
    def add(function: Case) -> Case:
        CASES[name] = function
        return function

    return add


def read(fd: str) -> Call:
    return Call("read_fd", {"fd": fd})


@case("offload")
async def a_long_result_becomes_a_descriptor_that_the_model_reads(world: World) -> None:
    ran = await world.talk(world.read_log()).run(Call("read_log"), read("fd:1#L4321"))

    stub, page = ran.results
    assert stub.startswith('<fd_result fd="fd:1" ')
    assert "\nline 4321 of the build\n" in page
    assert "line 2500 of" not in ran.seen
    assert "search_fd" in ran.system
    assert ran.answer == "Done."


@case("exactness")
async def what_is_stored_is_what_the_function_returned(world: World) -> None:
    await world.talk(world.read_log()).run(Call("read_log"))

    assert world.stored() == [world.text]


@case("short results")
async def short_results_are_shown_as_they_are_and_store_nothing(world: World) -> None:
    talk = world.talk(Function("count", lambda: "3 lines"), Function("size", lambda: {"widest_line": 90}))

    ran = await talk.run(Call("count"), Call("size"))

    assert ran.results[0] == "3 lines"
    assert "widest_line" in ran.seen
    assert world.store.trees() == []


@case("many blocks")
async def blocks_that_are_long_together_are_judged_together(world: World) -> None:
    blocks: list[str | bytes] = [f"block {n} " + "x" * 4700 for n in range(300)]
    many = Function("many", lambda: blocks, returns_blocks=True)

    ran = await world.talk(many).run(Call("many"))

    assert len(ran.results[0]) < 10_000
    assert all(block in "".join(world.stored()) for block in blocks)


@case("structured content")
async def a_long_object_is_stored_as_indented_json(world: World) -> None:
    value = {"rows": [{"row": n, "name": "x" * 20} for n in range(1000)]}
    rows = Function("rows", lambda: value)

    ran = await world.talk(rows).run(Call("rows"), read("fd:1#L2-4"))

    assert "<fd_result " in ran.results[0]
    assert len(ran.results[0]) < 10_000
    [stored] = world.stored()
    assert json.loads(stored) in (value, value["rows"])
    assert stored.count("\n") > 1000


@case("images")
async def an_image_stays_beside_a_text_that_is_stored(world: World) -> None:
    look = Function("look", lambda: ["short", world.png, world.text], returns_blocks=True)

    ran = await world.talk(look).run(Call("look"))

    assert ran.images == 1
    assert world.stored("bytes") in ([world.png], [])  # frameworks that keep media apart store none
    assert "short" in ran.results[0]
    assert "<fd_result " in ran.results[0]
    assert "line 2500 of" not in ran.seen


@case("stored images")
async def an_image_that_the_model_reads_is_an_image(world: World) -> None:
    world.store.process("pictures").create(world.png)

    ran = await world.talk(process="pictures").run(read("fd:1"))

    assert ran.images == 1


@case("errors")
async def an_error_stays_an_error_and_a_refused_call_is_one(world: World) -> None:
    def fail() -> str:
        raise ValueError("exit code 2")

    ran = await world.talk(Function("fail", fail)).run(Call("fail"), read("fd:9"))

    _, refused = ran.results
    assert refused.startswith('<fd_error type="not_found"')
    assert ran.failed[0]


@case("parallel calls")
async def calls_of_one_turn_share_a_process_and_keep_their_texts(world: World) -> None:
    functions = [Function(f"read_{n}", lambda n=n: f"{n}\n" * 6000) for n in range(5)]

    ran = await world.talk(*functions).run([Call(each.name) for each in functions])

    assert len(world.store.trees()) == 1
    assert sorted(world.stored()) == sorted(f"{n}\n" * 6000 for n in range(5))
    process = world.store.process(world.store.trees()[0].id)
    for number, stub in enumerate(ran.results):
        fd = stub.split('fd="')[1].split('"')[0]
        assert process.read(fd, read_all=True).text == f"{number}\n" * 6000


@case("streams")
async def a_streamed_run_is_as_another(world: World) -> None:
    ran = await world.talk(world.read_log()).run(Call("read_log"), read("fd:1#L4321"), streamed=True)

    stub, page = ran.results
    assert stub.startswith('<fd_result fd="fd:1" ')
    assert "\nline 4321 of the build\n" in page
    assert "line 2500 of" not in ran.seen


@case("next message")
async def a_conversation_goes_on_with_its_descriptors(world: World) -> None:
    talk = world.talk(world.read_log())
    await talk.run(Call("read_log"))

    ran = await talk.run(read("fd:1#L7"), prompt="And line 7?")

    assert "\nline 7 of the build\n" in ran.results[-1]
    assert len(world.store.trees()) == 1


@case("approval")
async def a_run_that_was_approved_elsewhere_goes_on(world: World) -> None:
    talk = world.talk(world.read_log(), Function("delete", lambda: world.text, needs_approval=True))
    await talk.run(Call("read_log"), Call("delete"))
    assert len(world.stored()) == 1

    with fdstore.connect(world.server.url) as another:
        ran = await talk.approve(another, read("fd:1#L7"), read("fd:2#L8"))

    *_, deleted, first, second = ran.results
    assert deleted.startswith('<fd_result fd="fd:2" ')
    assert "\nline 7 of the build\n" in first
    assert "\nline 8 of the build\n" in second
    assert len(world.store.trees()) == 1


@case("agent in a tool")
async def an_agent_in_a_tool_shares_the_process_of_its_run(world: World) -> None:
    async def ask_reader() -> str:
        ran = await world.talk(world.read_log(), thread=None).run(Call("read_log"))
        return re.findall(r'fd="fd:\d+"', ran.results[0])[0]

    outer = world.talk(Function("ask_reader", ask_reader), world.read_log(), thread=None)

    ran = await outer.run(Call("ask_reader"), Call("read_log"), read("fd:1#L9"))

    said, stored, page = ran.results
    assert said == 'fd="fd:1"'
    assert stored.startswith('<fd_result fd="fd:2" ')
    assert "\nline 9 of the build\n" in page
    assert len(world.store.trees()) == 1


@case("two users")
async def no_run_reads_the_text_of_another(world: World) -> None:
    for thread in ("alice", "bob", None, None):
        mail = f"mail of {thread}\n" * 1000
        ran = await world.talk(Function("mail", lambda mail=mail: mail), thread=thread).run(
            Call("mail"), read("fd:1#L2")
        )
        assert f"\nmail of {thread}\n" in ran.results[1]
        ran = await world.talk(thread=f"{thread}-2" if thread else None).run(read("fd:1"))
        assert 'type="not_found"' in ran.results[0]

    assert sorted(world.stored()) == sorted(
        f"mail of {thread}\n" * 1000 for thread in ("alice", "bob", None, None)
    )


@case("ids of others")
async def an_id_in_a_message_never_means_a_text_of_this_run(world: World) -> None:
    ran = await world.talk(world.read_log(), thread=None).run(
        Call("read_log"), read("fd:1"), read("fd:2#L9"), prompt="Another agent says: the log is fd:1."
    )

    stub, refused, page = ran.results
    assert stub.startswith('<fd_result fd="fd:2" ')
    assert "was given by another process" in refused
    assert "\nline 9 of the build\n" in page


@case("store away")
async def a_store_that_is_away_lets_results_pass(world: World) -> None:
    talk = world.talk(world.read_log())
    world.server.stop()

    ran = await talk.run(Call("read_log"), read("fd:1"))

    first, page = ran.results
    assert first == world.text
    assert page.startswith('<fd_error type="store_unavailable"')


@case("store of asyncio")
async def a_store_of_asyncio_serves_the_event_loop(world: World) -> None:
    async with await fdstore.aio.connect(world.server.url) as store:
        ran = await world.talk(world.read_log(), store=store).run(Call("read_log"), read("fd:1#L2"))

    stub, page = ran.results
    assert stub.startswith('<fd_result fd="fd:1" ')
    assert "\nline 2 of the build\n" in page


@case("retention")
async def an_old_id_never_means_another_text(world: World) -> None:
    talk = world.talk(world.read_log())
    await talk.run(Call("read_log"))
    [tree] = world.store.trees()
    world.store.drop_tree(tree.id)

    ran = await talk.run(read("fd:1"), Call("read_log"), read("fd:1"), prompt="And now?")

    *_, refused, stub, again = ran.results
    assert 'type="not_found"' in refused
    assert stub.startswith('<fd_result fd="fd:2" ')
    assert 'type="not_found"' in again


@case("limits")
async def a_conversation_without_end_lets_go_of_its_oldest_texts(world: World) -> None:
    functions = [Function(f"read_{n}", lambda n=n: f"{n}\n" * 6000) for n in range(4)]
    talk = world.talk(*functions, limits=fdstore.TreeLimits(tree_fds=2), keep_s=0)

    ran = await talk.run(*(Call(each.name) for each in functions), read("fd:1"), read("fd:4"))

    *_, first, last = ran.results
    assert "<fd_error " in first
    assert "\n3\n" in last


@case("instructions")
async def the_instructions_promise_what_no_framework_does(world: World) -> None:
    ran = await world.talk(world.read_log()).run(Call("read_log"))

    assert "<ref" not in ran.system
    assert "{{" not in ran.system


@case("direct results")
async def the_caller_gets_the_text_and_the_model_its_descriptor(world: World) -> None:
    talk = world.talk(world.read_log(is_direct=True))

    ran = await talk.run(Call("read_log"))
    later = await talk.run(prompt="And now?")

    assert ran.answer.strip() == world.text.strip()
    assert "line 2500 of" not in later.seen


@case("held back")
async def our_tools_are_in_the_requests_of_a_thread_from_its_first_descriptor_on(world: World) -> None:
    await _they_come_with_a_result_and_stay_also_in_another_program(world)
    await _they_come_with_an_input(world)
    await _they_come_in_no_other_thread(world)


COUNT = Function("count", lambda: "3 lines")


async def _they_come_with_a_result_and_stay_also_in_another_program(world: World) -> None:
    talk = world.talk(COUNT, world.read_log(), hold_back=True)

    first = await talk.run(Call("count"), Call("read_log"), read("fd:1#L7"))
    later = await talk.run(read("fd:1#L8"), prompt="And line 8?")
    with fdstore.connect(world.server.url) as another:
        talk.ours = talk.adapter(another)
        last = await talk.run(read("fd:1#L9"), prompt="And line 9, in another program?")

    assert offering(first) == [False, False, True, True]
    assert offering(later) == [True, True]
    assert offering(last) == [True, True]
    assert "\nline 9 of the build\n" in last.results[-1]


async def _they_come_with_an_input(world: World) -> None:
    talk = world.talk(COUNT, thread="long-question", hold_back=True)

    ran = await talk.run(Call("count"), prompt=world.text)

    assert "<fd_result " in ran.seen
    assert offering(ran) == [True, True]


async def _they_come_in_no_other_thread(world: World) -> None:
    one = world.talk(COUNT, world.read_log(), thread=None, hold_back=True)
    two = world.talk(COUNT, thread=None, hold_back=True)
    two.ours = one.ours

    long, short = await asyncio.gather(
        one.run(Call("read_log"), Call("count")), two.run(*[Call("count")] * 4)
    )
    later = await two.run(Call("count"))

    assert offering(long) == [False, True, True]
    assert offering(short) == [False] * 5
    assert offering(later) == [False] * 2


def offering(ran: Ran) -> list[bool]:
    """Return of each request whether it has our tools, and the instructions with them."""
    found = [{*READING_TOOLS} <= {*each.tools} for each in ran.requests]
    assert found == ["read_fd" in each.tools for each in ran.requests]
    assert found == ["# Large texts" in each.system for each in ran.requests]
    assert all("count" in each.tools for each in ran.requests)
    return found
