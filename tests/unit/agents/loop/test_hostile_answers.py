"""Odd parts of answers, in each API: the journal can store what is kept of them, and read it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from fdstore.agents.loop.answer import MAX_REASON_CHARS, MAX_TOKENS, AnswerBuilder
from fdstore.agents.loop.conversation import Assistant, Conversation, decode_entry, encode_entry
from fdstore.agents.loop.models.openai_chat_form import ChatAnswerBuilder
from fdstore.agents.loop.models.openai_responses_form import ResponseBuilder
from fdstore.testing import ScriptedModel, call, garbled, turn
from tests.dialects import every_dialect
from tests.unit.agents.loop.model_client import ADD, open_client

HALF = "\ud83d"
Calls = Sequence[tuple[str, str]]


class Parts(NamedTuple):
    """What the answers of all APIs have: the ids and arguments of calls, a stop reason, counts of tokens."""

    calls: Calls = ()
    stop: Any = "any"
    sent: Any = 0
    generated: Any = 0


def of_messages(parts: Parts) -> Assistant:
    builder = AnswerBuilder()
    builder.add({"type": "message_start", "message": {"usage": {"input_tokens": parts.sent}}})
    for index, (id_, arguments) in enumerate(parts.calls):
        block = {"type": "tool_use", "id": id_, "name": "add", "input": {}}
        builder.add({"type": "content_block_start", "index": index, "content_block": block})
        delta = {"type": "input_json_delta", "partial_json": arguments}
        builder.add({"type": "content_block_delta", "index": index, "delta": delta})
    delta = {"stop_reason": parts.stop}
    builder.add({"type": "message_delta", "delta": delta, "usage": {"output_tokens": parts.generated}})
    return builder.finish()


def of_chat(parts: Parts) -> Assistant:
    builder = ChatAnswerBuilder()
    calls = [
        {"index": index, "id": id_, "function": {"name": "add", "arguments": arguments}}
        for index, (id_, arguments) in enumerate(parts.calls)
    ]
    usage = {"prompt_tokens": parts.sent, "completion_tokens": parts.generated}
    choice = {"delta": {"tool_calls": calls}, "finish_reason": parts.stop}
    builder.add({"choices": [choice], "usage": usage})
    return builder.finish()


def of_responses(parts: Parts) -> Assistant:
    builder = ResponseBuilder()
    output = [
        {"type": "function_call", "call_id": id_, "name": "add", "arguments": arguments}
        for id_, arguments in parts.calls
    ]
    response = {
        "output": output,
        "incomplete_details": {"reason": parts.stop},
        "usage": {"input_tokens": parts.sent, "output_tokens": parts.generated},
    }
    builder.add({"type": "response.incomplete", "response": response})
    return builder.finish()


each_api = pytest.mark.parametrize("answer_of", [of_messages, of_chat, of_responses])
AnswerOf = Callable[[Parts], Assistant]


def reread(answer: Assistant) -> Assistant:
    entry = decode_entry(encode_entry(answer).encode("utf-8"))
    assert entry == answer
    return answer


@each_api
@pytest.mark.parametrize(
    ("counted", "believed"),
    [(-5, 0), (1.5, 0), (1e30, 0), (True, 0), ("7", 0), ([7], 0), (None, 0), (7, 7), (10**30, MAX_TOKENS)],
)
def test_a_count_of_tokens_is_a_whole_number_within_bounds(
    answer_of: AnswerOf, counted: Any, believed: int
) -> None:
    answer = reread(answer_of(Parts(sent=counted, generated=counted)))

    assert (answer.input_tokens, answer.output_tokens) == (believed, believed)


def test_a_count_that_is_none_does_not_replace_one_before_it() -> None:
    builder = AnswerBuilder()
    builder.add({"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}})
    builder.add({"type": "message_delta", "delta": {}, "usage": {"input_tokens": -1, "output_tokens": 2}})

    answer = builder.finish()

    assert (answer.input_tokens, answer.output_tokens) == (7, 2)


@each_api
def test_half_a_character_in_a_stop_reason_is_escaped(answer_of: AnswerOf) -> None:
    assert reread(answer_of(Parts(stop=HALF))).stop_reason == "\\ud83d"


@each_api
def test_a_long_stop_reason_is_cut(answer_of: AnswerOf) -> None:
    assert reread(answer_of(Parts(stop="q" * 1_000_000))).stop_reason == "q" * MAX_REASON_CHARS


@each_api
@pytest.mark.parametrize("stop", [7, {"a": 1}, [HALF]])
def test_a_stop_reason_that_is_not_text_makes_an_answer_unreadable(answer_of: AnswerOf, stop: Any) -> None:
    with pytest.raises(ValueError, match=r"stop reason is not text|another form"):
        answer_of(Parts(stop=stop))


@each_api
def test_half_a_character_in_the_id_of_a_malformed_call_is_escaped(answer_of: AnswerOf) -> None:
    answer = reread(answer_of(Parts([(HALF, "{")])))

    assert list(answer.malformed) == [answer.calls[0]["id"]] == ["\\ud83d"]


@each_api
@pytest.mark.parametrize("first", ["{}", "{"])
def test_of_calls_with_one_id_the_malformed_one_alone_is_refused(answer_of: AnswerOf, first: str) -> None:
    second = "{" if first == "{}" else "{}"

    conversation = Conversation([reread(answer_of(Parts([("a", first), ("a", second)])))])

    assert [bool(each.malformed) for each in conversation.turns[0].calls] == [first == "{", second == "{"]


def test_the_key_of_a_call_is_its_own_whatever_the_ids() -> None:
    answer = of_messages(Parts([(id_, "{}") for id_ in ("a", "a", "a#2", "a#2", "a")]))

    keys = [each.key for each in Conversation([answer]).turns[0].calls]

    assert keys == ["turn1:a", "turn1:a#3", "turn1:a#2", "turn1:a#2#2", "turn1:a#4"]


def test_arguments_that_did_not_come_in_pieces_are_checked_too() -> None:
    builder = AnswerBuilder()
    block = {"type": "tool_use", "id": "a", "name": "add", "input": {"n": [float("inf")]}}
    builder.add({"type": "content_block_start", "index": 0, "content_block": block})

    assert list(reread(builder.finish()).malformed) == ["a"]


@pytest.mark.parametrize("index", [None, "a", 1.5, [1]])
def test_the_index_of_a_block_is_a_whole_number(index: Any) -> None:
    event = {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}

    with pytest.raises(ValueError, match="index"):
        AnswerBuilder().add(event)


@pytest.mark.parametrize("index", [None, "a", float("inf"), float("nan"), [1]])
def test_the_index_of_an_item_is_a_number(index: Any) -> None:
    event = {"type": "response.output_item.done", "output_index": index, "item": {}}

    with pytest.raises(ValueError):
        ResponseBuilder().add(event)


@every_dialect
def test_a_good_call_is_kept_beside_one_that_stays_malformed() -> None:
    said = turn(call("add", a=1), garbled("add", '{"a": '))

    with ScriptedModel([said] * 3) as scripted, open_client(scripted) as client:
        answer = client.query(tools=[ADD])

    assert [bool(each.malformed) for each in Conversation([answer]).turns[0].calls] == [False, True]
