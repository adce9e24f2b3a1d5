"""Requests of an agent begin with the bytes of the one before, and the provider is asked to cache them."""

from __future__ import annotations

import itertools
import json
from functools import partial
from typing import Any

import pytest

from fdstore.bench.fresh_trees import drop_with_numbers
from fdstore.client import Store
from fdstore.store.processes.process_records import record
from fdstore.testing import Request, Usage, call, fail, say, turn
from fdstore.tools.clearing import ClearingConfig
from tests.dialects import every_dialect, every_dialect_that_tells_caches
from tests.on_redis.running_agents import SMALL, Play, tool

WORK = [
    turn(say("First."), call("lines", count=200, id="a"), call("echo", words="a", id="b")),
    turn(call("read_fd", fd="fd:1", start=3, id="c"), call("breaks", words="b", id="d")),
    turn(call("echo", words="c", id="e"), call("list_fds", id="f")),
    say("Done."),
]


@pytest.fixture
def cached(play: Play) -> Play:
    """`play` with tools that make short, long, stored and failing results."""
    functions = tuple(map(tool, ("lines", "echo", "breaks")))
    tools = ("read_fd", "list_fds", "close_fd")
    return partial(play, tools=tools, python=functions, file_descriptor=SMALL)


@pytest.mark.parametrize(
    ("prompt_cache", "sent"),
    [(True, {"type": "ephemeral"}), ("1h", {"type": "ephemeral", "ttl": "1h"}), (False, None)],
)
def test_the_provider_is_asked_to_cache_requests(cached: Play, prompt_cache: Any, sent: Any) -> None:
    agents = cached(WORK, prompt_cache=prompt_cache)

    assert [request.raw.get("cache_control") for request in agents.model.requests] == [sent] * 4


@every_dialect
@pytest.mark.parametrize("deferred", [True, False])
def test_each_request_begins_with_the_one_before_byte_by_byte(cached: Play, deferred: bool) -> None:
    requests = cached(WORK, deferred_tools=deferred).model.requests

    for before, request in itertools.pairwise(requests):
        (whole, others), (start, others_before) = map(conversation_and_others, (request, before))
        assert whole.startswith(start.removesuffix("]"))
        assert others == others_before


def conversation_and_others(request: Request) -> tuple[str, str]:
    """Return the bytes of the conversation that a request has, and those of its other parts."""
    others = dict(request.raw)
    conversation = others.pop("messages", None) or others.pop("input")
    return json.dumps(conversation), json.dumps(others)


def test_without_a_cache_the_tools_that_come_with_the_first_descriptor_are_all_that_changes(
    cached: Play,
) -> None:
    first, second, *_ = cached(WORK, prompt_cache=False).model.requests

    kept = [tool for tool in second.raw["tools"] if tool["name"] in first.tools]
    assert json.dumps(kept) == json.dumps(first.raw["tools"])
    assert json.dumps(second.raw["system"]) == json.dumps(first.raw["system"])
    assert json.dumps(second.raw["messages"][:1]) == json.dumps(first.raw["messages"])


@every_dialect
@pytest.mark.parametrize("deferred", [True, False])
def test_a_resumed_agent_sends_the_same_bytes(cached: Play, store: Store, deferred: bool) -> None:
    sent = [json.dumps(request.raw) for request in cached(WORK, deferred_tools=deferred).model.requests]
    drop_with_numbers(store, "solo")

    def script(request: Request) -> Any:
        return WORK[request.turn_number]

    resumed = cached(script, crashes=(7, 9), deferred_tools=deferred)
    again = [json.dumps(request.raw) for request in resumed.model.requests]

    assert len(again) >= len(sent)
    assert list(dict.fromkeys(again)) == sent  # an answer that was not stored is asked for twice


def kind_of(record: bytes) -> str:
    return str(json.loads(record)["kind"])


LONG = Usage(input_tokens=2000, output_tokens=10)
SHORT = Usage(input_tokens=20, output_tokens=10)
READING = [
    turn(call("lines", count=200, id="a"), usage=SHORT),
    turn(call("read_fd", fd="fd:1", read_all=True, id="b"), usage=SHORT),
    turn(call("read_fd", fd="fd:1", start=2, count=20, id="c"), usage=LONG),
    say("Done."),
]
CLEARING = ClearingConfig(clear_at_tokens=1000, keep_turns=1)


# the last 7 requests to Redis of such a run: it clears among them
@pytest.mark.parametrize("crashes", [(), *((requests,) for requests in range(9, 16))], ids=str)
@every_dialect
def test_old_results_are_cleared_once_and_stay_so(cached: Play, crashes: tuple[int, ...]) -> None:
    def script(request: Request) -> Any:
        return READING[request.turn_number]

    agents = cached(script, crashes=crashes, clearing=CLEARING)

    requests = {request.turn_number: request for request in agents.model.requests}
    before, after = ([result.text for result in requests[number].tool_results()] for number in (2, 3))
    assert before[0].startswith("<fd_result ")
    assert before[1].startswith("<fd_content ")
    assert after[0] == '[Cleared to save room; it is stored: read_fd(fd="fd:1") shows it again.]'
    assert after[1] == "[Cleared to save room; the same call shows it again.]"
    assert after[2].startswith("<fd_content ")
    assert [kind_of(record) for record in agents.journal()].count("cleared") == 1
    assert len({json.dumps(request.raw) for request in agents.model.requests}) == 4


def test_a_closed_text_is_not_cleared(cached: Play) -> None:
    script = [
        turn(call("lines", count=200), usage=SHORT),
        turn(call("read_fd", fd="fd:1", read_all=True), usage=SHORT),
        turn(call("close_fd", fd="fd:1"), usage=LONG),
        say("Done."),
    ]

    requests = cached(script, clearing=CLEARING).model.requests

    assert requests[3].messages[: len(requests[2].messages)] == requests[2].messages


@every_dialect
def test_the_tokens_of_an_agent_are_in_its_record(cached: Play, store: Store) -> None:
    first = Usage(input_tokens=5, output_tokens=7, cache_creation_input_tokens=900)
    second = Usage(input_tokens=6, output_tokens=8, cache_read_input_tokens=900)

    cached([turn(call("echo", words="a"), usage=first), turn(say("Done."), usage=second)])

    found = store.run(record("fdstore", "solo"))
    assert (found.input_tokens, found.output_tokens, found.tokens) == (905 + 906, 15, 905 + 906 + 15)


@every_dialect_that_tells_caches
def test_the_tokens_of_caches_are_in_the_record_of_an_agent(cached: Play, store: Store) -> None:
    first = Usage(input_tokens=5, cache_creation_input_tokens=900)
    second = Usage(input_tokens=6, cache_read_input_tokens=900)

    cached([turn(call("echo", words="a"), usage=first), turn(say("Done."), usage=second)])

    found = store.run(record("fdstore", "solo"))
    assert (found.cache_read_tokens, found.cache_write_tokens) == (900, 900)


TOO_LONG = fail(400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum")


def refusing(turns: list[Any], *refused: int) -> Any:
    """Return a script that refuses the requests of these numbers for their length."""
    asked = itertools.count()

    def script(request: Request) -> Any:
        return TOO_LONG if next(asked) in refused else turns[request.turn_number]

    return script


@every_dialect
def test_an_agent_whose_model_refuses_the_length_clears_results_and_asks_once_more(cached: Play) -> None:
    agents = cached(refusing(READING, 3))

    last = [result.text for result in agents.model.requests[-1].tool_results()]
    assert last[1] == "[Cleared to save room; the same call shows it again.]"
    assert last[2].startswith("<fd_content ")
    assert (agents.record().state, agents.answer()) == ("exited", "Done.")


@every_dialect
@pytest.mark.parametrize(("turns", "refused"), [(READING, (3, 4)), ([say("Done.")], (0,))])
def test_an_agent_with_nothing_more_to_clear_fails_with_the_words_of_the_model(
    cached: Play, turns: list[Any], refused: tuple[int, ...]
) -> None:
    agents = cached(refusing(turns, *refused))

    assert agents.record().state == "failed"
    assert "prompt is too long: 208310 tokens" in agents.record().reason
