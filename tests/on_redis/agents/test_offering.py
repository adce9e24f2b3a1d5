"""An agent is offered the tools on descriptors once it has one: deferred until then, or left out."""

from __future__ import annotations

import itertools
import json
import logging
import re
from collections.abc import Callable
from typing import Any

import pytest

from fdstore.agents.loop.conversation import Cleared, Offered, Undeferred, decode_entry
from fdstore.bench.fresh_trees import drop_with_numbers
from fdstore.client import Store
from fdstore.testing import Request, Turn, Usage, call, say, turn
from fdstore.tools.clearing import ClearingConfig
from tests.on_redis.running_agents import SMALL, Agents, Play, tool
from tests.thorough import thorough

AgentsAfter = Callable[..., Agents]
RequestsOf = Callable[..., tuple[Request, ...]]
READERS = ("read_fd", "search_fd")
FUNCTIONS = (tool("lines"), tool("echo"), tool("breaks"))
YOURS = ("lines", "echo", "breaks")
LEFT_OUT = {"prompt_cache": False}
DEFERRED = {"deferred_tools": True}
WORK = [
    call("echo", words="short", id="a"),
    turn(call("lines", count=200, id="b"), call("echo", words="short too", id="c")),
    call("read_fd", fd="fd:1", start=2, id="d"),
    say("Done."),
]


@pytest.fixture
def agents_after(play: Play) -> AgentsAfter:
    """`agents_after(script, *crashes, **more)`: the agents after one was run to its end."""

    def played(script: list[Turn], *crashes: int, **more: Any) -> Agents:
        options = {"tools": READERS, "python": FUNCTIONS, "file_descriptor": SMALL, **more}
        return play(lambda request: script[request.turn_number], crashes=crashes, **options)

    return played


@pytest.fixture
def requests_of(agents_after: AgentsAfter, store: Store) -> RequestsOf:
    """`requests_of(script, *crashes, **more)`: the requests of an agent that was run to its end."""

    def played(script: list[Turn], *crashes: int, **more: Any) -> tuple[Request, ...]:
        agents = agents_after(script, *crashes, **more)
        assert (agents.record().reason, agents.answer()) == (None, "Done.")
        assert not any(result.is_error for result in agents.results() if result.call != "broken")
        drop_with_numbers(store, "solo")
        return agents.model.requests

    return played


def bytes_of(value: object) -> str:
    """Return what is sent, without the estimate of a text: of one that an earlier attempt stored, it is made
    from the ends."""
    return re.sub(r"(?<=tokens=\\\")~[0-9]+", "~0", json.dumps(value))


def check_each_begins_with_the_one_before(requests: tuple[Request, ...]) -> None:
    for before, after in itertools.pairwise(requests):
        assert bytes_of(after.raw["messages"]).startswith(bytes_of(before.raw["messages"]).removesuffix("]"))
        for name in ("system", "tools"):
            assert bytes_of(after.raw[name]) == bytes_of(before.raw[name])


# left out


def test_the_tools_come_with_the_first_descriptor_and_a_note_that_explains_them(
    requests_of: RequestsOf,
) -> None:
    requests = requests_of(WORK, **LEFT_OUT)

    offered = [set(READERS) <= set(request.tools) for request in requests]
    assert offered == [False, False, True, True]
    assert [request.tools for request in requests[:2]] == [YOURS] * 2
    assert {request.system for request in requests} == {"You are SOLO."}
    last = requests[2].messages[-1]["content"]
    assert [block["type"] for block in last] == ["tool_result", "tool_result", "text"]
    assert last[-1]["text"].startswith("# Large texts\n")


# deferred


def test_deferred_tools_stand_in_each_request_and_the_first_descriptor_loads_them(
    requests_of: RequestsOf,
) -> None:
    requests = requests_of(WORK, **DEFERRED)

    assert [request.unloaded for request in requests] == [set(READERS)] * 2 + [set()] * 2
    check_each_begins_with_the_one_before(requests)
    assert {request.system for request in requests} == {"You are SOLO."}
    references = [{"type": "tool_reference", "tool_name": name} for name in READERS]
    loading, other, named, shown, explained = requests[2].messages[-1]["content"]
    assert (loading["tool_use_id"], loading["content"]) == ("b", references)
    assert other["content"] == "you said short too"
    assert named["text"] == "The result of call 1, of lines:"
    assert shown["text"].startswith('<fd_result fd="fd:1"')
    assert explained["text"].startswith("# Large texts\n")


def test_of_several_results_that_show_descriptors_the_last_loads_the_tools(requests_of: RequestsOf) -> None:
    twice = turn(call("lines", count=200, id="a"), call("lines", count=300, id="b"))

    _, request = requests_of([twice, say("Done.")], **DEFERRED)

    first, loading, second, _ = request.messages[-1]["content"]
    assert first["content"].startswith('<fd_result fd="fd:1"')
    assert loading["content"][0] == {"type": "tool_reference", "tool_name": "read_fd"}
    assert second["text"].startswith('<fd_result fd="fd:2"')


def test_where_prompts_are_cached_by_another_server_nothing_is_held_back(requests_of: RequestsOf) -> None:
    requests = requests_of(WORK)

    assert [request.tools for request in requests] == [(*READERS, *YOURS)] * 4
    assert all("# Large texts\n" in request.system and not request.unloaded for request in requests)


@pytest.mark.parametrize("way", [LEFT_OUT, DEFERRED], ids=["left out", "deferred"])
@pytest.mark.parametrize(
    "crash", [6, 10, 17, *thorough("the requests between", 5, 7, 8, 9, 11, 12, 13, 14, 15, 16)]
)
def test_a_resumed_agent_is_offered_the_same(
    requests_of: RequestsOf, way: dict[str, Any], crash: int
) -> None:
    sent = [bytes_of(request.raw) for request in requests_of(WORK, **way)]

    again = [bytes_of(request.raw) for request in requests_of(WORK, crash, **way)]

    assert list(dict.fromkeys(again)) == sent  # an answer that was not stored is asked for twice


ERROR_FIRST = [
    call("breaks", words="word " * 100, id="broken"),
    call("read_fd", fd="fd:1", start=2, id="d"),
    say("Done."),
]


def test_deferred_tools_are_offered_as_others_if_the_first_descriptor_is_in_an_error(
    requests_of: RequestsOf,
) -> None:
    """The API takes only text in an error."""
    first, second, _ = requests_of(ERROR_FIRST, **DEFERRED)

    assert first.unloaded == set(READERS)
    assert (second.tools, second.unloaded) == (first.tools, set())
    result, explained = second.messages[-1]["content"]
    assert result["content"].startswith("<fd_result ")
    assert explained["text"].startswith("# Large texts\n")


READING = [
    turn(call("lines", count=200, id="a"), usage=Usage(input_tokens=20)),
    turn(call("read_fd", fd="fd:1", start=2, count=20, id="b"), usage=Usage(input_tokens=20)),
    turn(call("read_fd", fd="fd:1", start=22, count=20, id="c"), usage=Usage(input_tokens=2000)),
    say("Done."),
]


def test_a_result_that_loads_tools_still_does_so_when_it_is_cleared(agents_after: AgentsAfter) -> None:
    agents = agents_after(READING, **DEFERRED, clearing=ClearingConfig(clear_at_tokens=1000, keep_turns=1))

    *_, last = agents.model.requests
    assert agents.answer() == "Done."
    assert any(isinstance(decode_entry(record), Cleared) for record in agents.journal())
    assert last.unloaded == set()
    loading, line, explained = last.messages[2]["content"]
    assert [block["type"] for block in loading["content"]] == ["tool_reference"] * 2
    assert line["text"].startswith("[Cleared to save room; it is stored: ")
    assert explained["text"].startswith("# Large texts\n")


# servers that refuse


def test_a_server_that_refuses_deferred_tools_is_asked_with_all_of_them_where_prompts_are_cached(
    requests_of: RequestsOf, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fdstore.agent")

    refused, *requests = requests_of(WORK, **DEFERRED, refuses=["defer_loading"])

    assert refused.raw["tools"][0]["defer_loading"]
    assert [request.tools for request in requests] == [(*READERS, *YOURS)] * 4
    assert all("# Large texts\n" in request.system for request in requests)
    check_each_begins_with_the_one_before(tuple(requests))
    [told] = [each for each in caplog.messages if "not deferred any more" in each]
    assert "tools.0.defer_loading: extra inputs are not permitted" in told


def test_a_server_that_refuses_deferred_tools_gets_them_with_the_first_descriptor_where_nothing_is_cached(
    requests_of: RequestsOf,
) -> None:
    refused, *requests = requests_of(WORK, **DEFERRED, **LEFT_OUT, refuses=["defer_loading"])

    assert refused.raw["tools"][0]["defer_loading"]
    assert [bytes_of(each.raw) for each in requests] == [
        bytes_of(each.raw) for each in requests_of(WORK, **LEFT_OUT)
    ]


@pytest.mark.parametrize("cache", [True, False])
def test_a_server_that_refuses_the_first_references_gets_the_tools_and_the_result_without(
    requests_of: RequestsOf, cache: bool
) -> None:
    requests = requests_of(WORK, **DEFERRED, prompt_cache=cache, refuses=["tool_reference"])

    *before, refused, after, last = requests
    check_each_begins_with_the_one_before((*before, refused))
    check_each_begins_with_the_one_before((after, last))
    assert after.tools == refused.tools
    assert not any("defer_loading" in each for each in after.raw["tools"])
    long, short, explained = after.messages[-1]["content"]
    assert long["content"].startswith('<fd_result fd="fd:1"')
    assert short["content"] == "you said short too"
    assert explained["text"].startswith("# Large texts\n")


@pytest.mark.parametrize("refuses", ["defer_loading", "tool_reference"])
@pytest.mark.parametrize(
    "crash", [7, 11, *thorough("the requests between", 5, 6, 8, 9, 10, 12, 13, 14, 15, 16, 17)]
)
def test_a_resumed_agent_remembers_that_its_server_refuses_deferred_tools(
    requests_of: RequestsOf, refuses: str, crash: int
) -> None:
    sent = [bytes_of(request.raw) for request in requests_of(WORK, **DEFERRED, refuses=[refuses])]

    again = [bytes_of(request.raw) for request in requests_of(WORK, crash, **DEFERRED, refuses=[refuses])]

    assert list(dict.fromkeys(again)) == sent


def test_the_refusal_is_in_the_journal(agents_after: AgentsAfter) -> None:
    agents = agents_after(WORK, **DEFERRED, refuses=["tool_reference"])

    entries = [decode_entry(record) for record in agents.journal()]
    [offered] = [each for each in entries if isinstance(each, Offered)]
    [undeferred] = [each for each in entries if isinstance(each, Undeferred)]
    assert (offered.loaded_by, offered.tools) == ("turn2:b", READERS)
    assert undeferred.reason.startswith("the model answered 400 invalid_request_error: ")


# nothing is held back


@pytest.mark.parametrize("way", [LEFT_OUT, DEFERRED], ids=["left out", "deferred"])
@pytest.mark.parametrize(
    "fields",
    [{"tools": (*READERS, "write_fd")}, {"python": ()}, {"query": "A long question. " * 20}],
    ids=["can make one", "no functions", "has one"],
)
def test_nothing_is_held_back_from_an_agent_that_has_a_use_for_the_tools(
    requests_of: RequestsOf, way: dict[str, Any], fields: dict[str, Any]
) -> None:
    [request] = requests_of([say("Done.")], **way, **fields)

    assert set(READERS) <= set(request.tools)
    assert not request.unloaded
    assert "# Large texts\n" in request.system


@pytest.mark.parametrize(("way", "is_offered"), [(LEFT_OUT, True), (DEFERRED, False)])
def test_a_long_prompt_is_no_reason_to_load_deferred_tools(
    requests_of: RequestsOf, way: dict[str, Any], is_offered: bool
) -> None:
    [request] = requests_of([say("Done.")], **way, system="You are SOLO. " + "A long prompt. " * 8000)

    assert ("# Large texts\n" in request.system) == is_offered
    assert request.unloaded == (set() if is_offered else set(READERS))
