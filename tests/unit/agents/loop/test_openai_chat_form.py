"""Conversations as Chat Completions takes them, and answers from its chunks, as servers vary them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from fdstore.agents.loop.conversation import Assistant, decode_entry, encode_entry
from fdstore.agents.loop.models.openai_chat_form import ChatAnswerBuilder, chat_messages
from tests.unit.agents.loop.model_client import HELLO

PNG = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
PICTURE = {"type": "image", "source": PNG}
SIGNATURE = {"extra_content": {"google": {"thought_signature": "EpwB+/=="}}}


def answer_of(*deltas: dict[str, Any], finish: str | None = "stop", usage: Any = None) -> Assistant:
    """Return the answer of a stream of these deltas."""
    builder = ChatAnswerBuilder()
    for delta in deltas:
        builder.add({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    builder.add({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage:
        builder.add({"choices": [], "usage": usage})
    assert builder.is_whole == (finish is not None)
    return builder.finish()


def piece(arguments: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return a delta with a piece of a call."""
    name = fields.pop("name", None)
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [fields | {"function": {k: v for k, v in function.items() if v is not None}}]}


def calls_of(answer: Assistant) -> list[tuple[str, str, Any]]:
    return [(call["id"], call["name"], call["input"]) for call in answer.calls]


def sent_back(answer: Assistant) -> dict[str, Any]:
    """Return the message that the next request has of an answer."""
    [message] = chat_messages("", [{"role": "assistant", "content": answer.content}])
    return message


# conversations


def test_results_follow_their_calls_and_pictures_follow_all_results() -> None:
    calls = [{"type": "tool_use", "id": f"c{n}", "name": "look", "input": {"n": n}} for n in (1, 2)]
    seen = [{"type": "text", "text": "A plan."}, PICTURE]
    results = [
        {"type": "tool_result", "tool_use_id": "c1", "content": seen},
        {"type": "tool_result", "tool_use_id": "c2", "content": [PICTURE]},
        {"type": "text", "text": "A note."},
    ]

    system, user, assistant, first, second, last = chat_messages(
        "Be brief.",
        [*HELLO, {"role": "assistant", "content": calls}, {"role": "user", "content": results}],
    )

    assert (system, user) == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
    )
    assert assistant["content"] is None
    assert [call["function"]["arguments"] for call in assistant["tool_calls"]] == ['{"n":1}', '{"n":2}']
    assert first == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "A plan.\n[image 1] (after the results)",
    }
    assert second["content"] == "[image 2] (after the results)"
    assert [part.get("text") for part in last["content"]] == ["[image 1]", None, "[image 2]", None, "A note."]
    assert last["content"][1] == {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,AAAA"},
    }


def test_a_failed_result_begins_with_error() -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "no such file", "is_error": True}

    [sent] = chat_messages("", [{"role": "user", "content": [result]}])

    assert sent["content"] == "error: no such file"


def test_texts_of_the_user_are_one_text_and_documents_are_files() -> None:
    texts = [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
    pdf = {"type": "document", "source": {**PNG, "media_type": "application/pdf"}}

    sent = chat_messages("", [{"role": "user", "content": texts}, {"role": "user", "content": [pdf]}])

    assert sent[0]["content"] == "One.\n\nTwo."
    assert sent[1]["content"][0]["file"]["file_data"] == "data:application/pdf;base64,AAAA"


def test_thinking_of_another_provider_is_not_sent_nor_what_it_kept() -> None:
    blocks = [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "thinking", "thinking": "Hm.", "kept": {"openai-responses": {"id": "rs_1"}}},
        {"type": "text", "text": "Hi.", "kept": {"openai-responses": {"id": "msg_1"}}},
    ]

    assert chat_messages("", [{"role": "assistant", "content": blocks}]) == [
        {"role": "assistant", "content": "Hi."}
    ]


# calls, as servers stream them


ADD = [
    piece(id="a", type="function", index=0, name="add", arguments=""),
    piece('{"x"', index=0),
    piece(": 1}", index=0),
    piece(id="b", type="function", index=1, name="mul", arguments=""),
    piece('{"y": 2}', index=1),
]
BOTH = [("a", "add", {"x": 1}), ("b", "mul", {"y": 2})]


def test_parallel_calls_are_joined_from_their_pieces() -> None:
    assert calls_of(answer_of(*ADD, finish="tool_calls")) == BOTH


def test_pieces_of_parallel_calls_may_alternate() -> None:
    assert calls_of(answer_of(ADD[0], ADD[3], ADD[1], ADD[4], ADD[2])) == BOTH


WAYS = {
    "whole": [
        piece('{"x": 1}', id="a", index=0, name="add"),
        piece('{"y": 2}', id="b", index=1, name="mul"),
    ],
    "whole, without index": [piece('{"x": 1}', id="a", name="add"), piece('{"y": 2}', id="b", name="mul")],
    "whole, the same index": [
        piece('{"x": 1}', id="a", index=0, name="add"),
        piece('{"y": 2}', id="b", index=0, name="mul"),
    ],
    "id in each piece": [
        piece('{"x"', id="a", index=0, name="add"),
        piece(": 1}", id="a", index=0),
        piece('{"y": 2}', id="b", index=1, name="mul"),
    ],
    "id and name in each piece, without index": [
        piece('{"x"', id="a", name="add"),
        piece(": 1}", id="a", name="add"),
        piece('{"y": ', id="b", name="mul"),
        piece("2}", id="b", name="mul"),
    ],
    "the id late": [
        piece('{"x": ', index=0, name="add"),
        piece("1}", id="a", index=0),
        piece('{"y": 2}', id="b", index=1, name="mul"),
    ],
    "null fields": [
        piece('{"x": 1}', id="a", index=0, name="add"),
        {"content": None, "tool_calls": None},
        {"content": "", "tool_calls": []},
        {"tool_calls": [{"index": 0, "id": None, "function": None}]},
        piece('{"y": 2}', id="b", index=1, name="mul"),
    ],
    "arguments as objects": [
        {"tool_calls": [{"id": "a", "index": 0, "function": {"name": "add", "arguments": {"x": 1}}}]},
        {"tool_calls": [{"id": "b", "index": 1, "function": {"name": "mul", "arguments": {"y": 2}}}]},
    ],
}


@pytest.mark.parametrize("way", WAYS)
def test_calls_are_read_however_a_server_streams_them(way: str) -> None:
    assert calls_of(answer_of(*WAYS[way])) == BOTH


NAMELESS = {
    "in pieces, with index": [
        piece("", index=0, name="add"),
        piece('{"x": 1}', index=0),
        piece("", index=1, name="mul"),
        piece('{"y": 2}', index=1),
    ],
    "in pieces, without index": [
        piece("", name="add"),
        piece('{"x"'),
        piece(": 1}"),
        piece("", name="mul"),
        piece('{"y": 2}'),
    ],
    "whole, the same index": [piece('{"x": 1}', index=0, name="add"), piece('{"y": 2}', index=0, name="mul")],
    "empty ids": [piece('{"x": 1}', id="", name="add"), piece('{"y": 2}', id="", name="mul")],
}


@pytest.mark.parametrize("way", NAMELESS)
def test_calls_without_ids_get_ids_by_their_place(way: str) -> None:
    answer = answer_of(*NAMELESS[way])

    assert calls_of(answer) == [("call_1", "add", {"x": 1}), ("call_2", "mul", {"y": 2})]


def test_the_same_tool_twice_without_ids_is_two_calls() -> None:
    whole = [piece('{"x": 1}', name="add"), piece('{"x": 2}', name="add")]

    assert [call["input"] for call in answer_of(*whole).calls] == [{"x": 1}, {"x": 2}]


def test_the_same_tool_twice_in_pieces_without_ids_is_two_calls() -> None:
    answer = answer_of(piece("", name="add"), piece('{"x": 1}'), piece("", name="add"), piece('{"x": 2}'))

    assert [call["input"] for call in answer.calls] == [{"x": 1}, {"x": 2}]


def test_a_call_without_arguments_has_none() -> None:
    assert answer_of(piece(id="a", index=0, name="now")).calls[0]["input"] == {}


def test_an_answer_with_calls_that_ends_with_stop_is_one_of_calls() -> None:
    answer = answer_of(*ADD, finish="stop")

    assert (answer.stop_reason, answer.is_last) == ("tool_use", False)


def test_the_deprecated_form_of_a_call_is_one() -> None:
    answer = answer_of(
        {"function_call": {"name": "add", "arguments": '{"x"'}}, {"function_call": {"arguments": ": 1}"}}
    )

    assert calls_of(answer) == [("call_1", "add", {"x": 1})]


# ends


@pytest.mark.parametrize(
    ("finish", "stop_reason"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("model_length", "model_context_window_exceeded"),
        ("one_nobody_knows", "one_nobody_knows"),
    ],
)
def test_each_finish_reason_has_its_stop_reason(finish: str, stop_reason: str) -> None:
    assert answer_of({"content": "Hi."}, finish=finish).stop_reason == stop_reason


def test_a_refusal_is_shown_and_ends_as_one() -> None:
    answer = answer_of({"refusal": "I can"}, {"refusal": "not."})

    assert (answer.text, answer.stop_reason, answer.is_last) == ("I cannot.", "refusal", True)


def test_a_stream_without_a_finish_reason_is_not_whole() -> None:
    assert answer_of({"content": "Half a sen"}, finish=None).text == "Half a sen"


# tokens


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 7}, (100, 7, 0, 0)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 30},
            },
            (100, 7, 64, 30),
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 7, "prompt_cache_hit_tokens": 90},
            (100, 7, 90, 0),
        ),
        # reasoning in the total alone
        ({"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 157}, (100, 57, 0, 0)),
        ({"prompt_tokens": "many", "completion_tokens": -1, "prompt_tokens_details": None}, (0, 0, 0, 0)),
    ],
    ids=repr,
)
def test_tokens_are_all_that_was_sent_and_the_cached_part(usage: Any, tokens: tuple[int, ...]) -> None:
    answer = answer_of({"content": "Hi."}, usage=usage)

    counted = (
        answer.input_tokens,
        answer.output_tokens,
        answer.cache_read_tokens,
        answer.cache_write_tokens,
    )
    assert counted == tokens


# what a server wants back


def test_signatures_of_calls_are_kept_and_sent_back_as_they_came() -> None:
    answer = answer_of(piece('{"x": 1}', id="a", index=0, name="add", **SIGNATURE), {"content": ""})

    [call] = sent_back(decoded(answer))["tool_calls"]
    assert call == {
        "id": "a",
        "type": "function",
        "function": {"name": "add", "arguments": '{"x":1}'},
        **SIGNATURE,
    }


def test_a_signature_inside_the_function_is_sent_back_there() -> None:
    function = {"name": "add", "arguments": "{}", "thought_signature": "s"}

    answer = answer_of({"tool_calls": [{"id": "a", "index": 0, "function": function}]})

    [call] = sent_back(decoded(answer))["tool_calls"]
    assert call["function"] == function


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_shown_and_sent_back_in_the_field_that_it_came_in(field: str) -> None:
    answer = answer_of({field: "Let me "}, {field: "see."}, {"content": "Hi."})

    assert answer.content[0]["thinking"] == "Let me see."
    assert sent_back(decoded(answer)) == {"role": "assistant", "content": "Hi.", field: "Let me see."}


def test_details_of_reasoning_are_joined_as_their_server_cut_them() -> None:
    text = {"type": "reasoning.text", "index": 0, "format": "f"}
    encrypted = {"type": "reasoning.encrypted", "index": 1, "data": "AbC=", "id": "r1"}

    answer = answer_of(
        {"reasoning_details": [{**text, "text": "Let me "}], "reasoning": "Let me "},
        {"reasoning_details": [{**text, "text": "see.", "signature": None}], "reasoning": "see."},
        {"reasoning_details": [{**text, "signature": "sig"}]},
        {"reasoning_details": [encrypted]},
        {"content": "Hi."},
    )

    sent = sent_back(decoded(answer))
    assert sent["reasoning"] == "Let me see."
    assert sent["reasoning_details"] == [{**text, "text": "Let me see.", "signature": "sig"}, encrypted]


def test_reasoning_in_parts_of_the_content_is_shown_apart_from_the_text() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}

    answer = answer_of({"content": [thinking]}, {"content": [{"type": "text", "text": "Hi."}]})

    assert (answer.content[0]["thinking"], answer.text) == ("Hm.", "Hi.")


def test_fields_that_no_server_wants_back_are_not_sent() -> None:
    answer = answer_of({"content": "Hi.", "annotations": [{"url": "u"}], "audio": None})

    assert sent_back(answer) == {"role": "assistant", "content": "Hi."}


def test_calls_of_any_order_of_quirks_have_distinct_keys_in_the_journal() -> None:
    ids = itertools.chain.from_iterable(
        [call["id"] for call in answer_of(*way).calls] for way in WAYS.values()
    )

    assert set(ids) == {"a", "b"}


def decoded(answer: Assistant) -> Assistant:
    """Return an answer as the journal gives it back."""
    entry = decode_entry(encode_entry(answer).encode())
    assert isinstance(entry, Assistant)
    return entry
