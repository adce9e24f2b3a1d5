"""`ScriptedModel` speaks the Messages API: the SDK of Anthropic must see what the script says."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fdstore.testing
from fdstore.testing import Usage, call, say, think, turn
from fdstore.testing.dialects import Sending
from fdstore.testing.messages_api import DIALECT
from tests.unit.testing.sdk_client import HELLO, READ_FD, created, event_names, playing, streamed

CALLED: Any = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "toolu_0001", "name": "f", "input": {}}],
}
RESULT: Any = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "toolu_0001", "content": "r"}],
}
STOP_REASONS = [
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "something_new",
]

ways = pytest.mark.parametrize("ask", [created, streamed])
Ask = Callable[..., anthropic.types.Message]


# What the model says


@ways
def test_a_text_arrives_complete(ask: Ask) -> None:
    with playing([say("Grüße, 世界 🌍!\n")]) as (_, client):
        answer = ask(client)

    assert [block.to_dict() for block in answer.content] == [{"type": "text", "text": "Grüße, 世界 🌍!\n"}]
    assert answer.stop_reason == "end_turn"


@ways
def test_a_tool_call_arrives_with_its_arguments_and_an_id_of_its_own(ask: Ask) -> None:
    script = [call("read_fd", fd="fd:1", count=2), call("lookup", {"id": 7, "name": "é"}, id="toolu_x")]

    with playing(script) as (_, client):
        first, second = ask(client), ask(client)

    block = first.content[0].to_dict()
    assert block.pop("id").startswith("toolu_")
    assert block == {"type": "tool_use", "name": "read_fd", "input": {"fd": "fd:1", "count": 2}}
    assert first.stop_reason == "tool_use"
    assert second.content[0].to_dict()["id"] == "toolu_x"
    assert second.content[0].to_dict()["input"] == {"id": 7, "name": "é"}


@ways
def test_a_turn_holds_thinking_text_and_parallel_calls_in_order(ask: Ask) -> None:
    script = [turn(think("Hm."), say("Both."), call("a"), call("b", x=[1, {"y": None}]))]

    with playing(script) as (_, client):
        answer = ask(client)

    assert [block.type for block in answer.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert answer.content[0].to_dict()["thinking"] == "Hm."
    assert answer.content[0].to_dict()["signature"]
    assert len({block.to_dict()["id"] for block in answer.content[2:]}) == 2
    assert answer.content[3].to_dict()["input"] == {"x": [1, {"y": None}]}


@ways
@pytest.mark.parametrize("reason", STOP_REASONS)
def test_a_stop_reason_can_be_any(ask: Ask, reason: str) -> None:
    script = [turn(say("half"), stop_reason=reason, stop_sequence="END")]

    with playing(script) as (_, client):
        answer = ask(client)

    assert answer.stop_reason == reason
    assert answer.stop_sequence == "END"


@ways
def test_a_turn_may_be_empty_or_hold_a_block_of_any_type(ask: Ask) -> None:
    block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}

    with playing([turn(), turn(block, stop_reason="pause_turn")]) as (_, client):
        empty, searching = ask(client), ask(client)

    assert (empty.content, empty.stop_reason) == ([], "end_turn")
    assert searching.content[0].to_dict() == block


@ways
def test_usage_is_estimated_unless_the_script_gives_it(ask: Ask) -> None:
    exact = Usage(input_tokens=11, output_tokens=22, cache_read_input_tokens=33)

    with playing([say("x"), turn(say("x"), usage=exact)]) as (_, client):
        estimated = ask(client, messages=[{"role": "user", "content": "word " * 800}])
        given_ = ask(client)

    assert 1000 <= estimated.usage.input_tokens <= 1100
    assert estimated.usage.output_tokens > 0
    assert (given_.usage.input_tokens, given_.usage.output_tokens) == (11, 22)
    assert given_.usage.cache_read_input_tokens == 33


def test_a_stream_has_the_events_of_the_api_in_their_order() -> None:
    with playing([turn(say("abcdef"), call("f", a=1))]) as (_, client):
        names = list(event_names(client))

    assert names[:3] == ["message_start", "content_block_start", "ping"]
    assert names[3:7] == ["content_block_delta"] * 3 + ["content_block_stop"]
    assert names[7:9] == ["content_block_start", "content_block_delta"]
    assert names[-3:] == ["content_block_stop", "message_delta", "message_stop"]


@given(st.text(), st.dictionaries(st.text(), st.text() | st.integers(-(2**53), 2**53) | st.none()))
def test_deltas_join_to_the_original_text_and_arguments(text: str, arguments: dict[str, Any]) -> None:
    said = turn(say(text), call("f", arguments))
    finished = DIALECT.finish(said, Sending(id="msg", model="m", call_ids=iter(["toolu"]), input_tokens=1))

    sent = DIALECT.whole(finished, {"stream": True}, ())
    events = [json.loads(piece.split(b"data: ", 1)[1]) for piece in sent.pieces]

    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == text
    assert json.loads("".join(delta.get("partial_json", "") for delta in deltas)) == arguments


# Conversations


def test_a_refused_request_consumes_no_reply_and_is_recorded() -> None:
    with playing([say("first")]) as (model, client):
        with pytest.raises(anthropic.BadRequestError, match=r"invalid_request_error.*tool_use"):
            created(client, messages=[*HELLO, CALLED])
        answer = created(client)

    assert answer.content[0].to_dict()["text"] == "first"
    assert [request.turn_number for request in model.requests] == [1, 0]


def test_an_answer_kept_as_json_may_be_sent_back() -> None:
    script = [turn(think("Hm."), say("Reading."), call("f", id="toolu_0001")), say("done")]

    with playing(script) as (_, client):
        kept = json.loads(streamed(client, tools=[READ_FD]).to_json())
        reply = {"role": "assistant", "content": kept["content"]}
        answer = streamed(client, tools=[READ_FD], messages=[*HELLO, reply, RESULT])

    assert answer.stop_reason == "end_turn"


# The documentation


def test_the_example_of_the_package_runs() -> None:
    lines = inspect.cleandoc(fdstore.testing.__doc__ or "").split("\n")
    code = "\n".join(line[4:] for line in lines if line.startswith("    ") or not line)
    names: dict[str, Any] = {}

    exec(code, names)

    names["test_the_agent_looks_the_weather_up"]()
