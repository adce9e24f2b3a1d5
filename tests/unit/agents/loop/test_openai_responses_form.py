"""Conversations as items of the Responses API, and answers from the events of its stream."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore.agents.loop.conversation import Assistant, decode_entry, encode_entry
from fdstore.agents.loop.models.openai_responses_form import ResponseBuilder, ResponseFailed, input_items
from tests.unit.agents.loop.model_client import HELLO

REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}],
    "encrypted_content": "gAAAAB+/==",
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "status": "completed",
    "call_id": "call_1",
    "name": "add",
    "arguments": '{"x": 1}',
}
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "status": "completed",
    "role": "assistant",
    "phase": "commentary",
    "content": [{"type": "output_text", "text": "I add.", "annotations": [], "logprobs": []}],
}
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 30},
    "output_tokens": 50,
    "output_tokens_details": {"reasoning_tokens": 40},
}


def answer_of(
    *items: dict[str, Any], repeated: bool = True, status: str = "completed", **response: Any
) -> Assistant:
    """Return the answer of a response with these items; `repeated` at its end."""
    builder = ResponseBuilder()
    for index, item in enumerate(items):
        builder.add({"type": "response.output_item.added", "output_index": index, "item": {}})
        builder.add({"type": "response.output_item.done", "output_index": index, "item": item})
    output = list(items) if repeated else []
    builder.add({"type": f"response.{status}", "response": {"output": output, "usage": USAGE, **response}})
    assert builder.is_whole
    return builder.finish()


def sent_back(answer: Assistant) -> list[dict[str, Any]]:
    entry = decode_entry(encode_entry(answer).encode())
    assert isinstance(entry, Assistant)
    return input_items([{"role": "assistant", "content": entry.content}])


@pytest.mark.parametrize("repeated", [True, False])
def test_items_are_kept_and_sent_back_in_their_order(repeated: bool) -> None:
    answer = answer_of(REASONING, MESSAGE, CALL, repeated=repeated)

    shown = [(block["type"], block.get("thinking") or block.get("text")) for block in answer.content]
    assert shown == [("thinking", "One.\n\nTwo."), ("text", "I add."), ("tool_use", None)]
    assert answer.stop_reason == "tool_use"
    text = {"type": "output_text", "text": "I add.", "annotations": []}
    assert sent_back(answer) == [
        REASONING,
        {**MESSAGE, "content": [text]},
        {**CALL, "arguments": '{"x":1}'},
    ]


def test_tokens_count_all_that_was_sent_and_reasoning() -> None:
    answer = answer_of(MESSAGE)

    assert (answer.input_tokens, answer.output_tokens) == (100, 50)
    assert (answer.cache_read_tokens, answer.cache_write_tokens) == (64, 30)


def test_items_of_hosted_tools_are_sent_back_as_they_came() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "q"}}

    assert sent_back(answer_of(REASONING, search, MESSAGE))[:2] == [REASONING, search]


def test_reasoning_that_nothing_follows_or_that_cannot_be_read_is_not_sent_back() -> None:
    bare = {name: value for name, value in REASONING.items() if name != "encrypted_content"}

    assert [item["type"] for item in sent_back(answer_of(bare, MESSAGE, REASONING))] == ["message"]


def test_reasoning_of_open_models_is_sent_back_with_its_content() -> None:
    open_reasoning = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
    }

    answer = answer_of(open_reasoning, MESSAGE)

    assert answer.content[0]["thinking"] == "Hm."
    assert sent_back(answer)[0] == open_reasoning


def test_a_refusal_is_shown_and_ends_as_one() -> None:
    refusal = {**MESSAGE, "content": [{"type": "refusal", "refusal": "I cannot."}]}

    answer = answer_of(refusal)

    assert (answer.text, answer.stop_reason) == ("I cannot.", "refusal")


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [("max_output_tokens", "max_tokens"), ("content_filter", "refusal"), ("steered", "steered")],
)
def test_an_incomplete_response_ends_with_its_reason(reason: str, stop_reason: str) -> None:
    half = {**CALL, "arguments": '{"x": ', "status": "incomplete"}

    answer = answer_of(half, status="incomplete", incomplete_details={"reason": reason})

    if stop_reason == "steered":  # one that nobody knows: its calls are those of a complete answer
        assert answer.malformed
    else:
        assert (answer.stop_reason, answer.malformed, answer.is_last) == (stop_reason, {}, True)


@pytest.mark.parametrize(
    "event",
    [
        {
            "type": "response.failed",
            "response": {"error": {"code": "server_error", "message": "The server had an error."}},
        },
        {"type": "error", "code": "server_error", "message": "The server had an error.", "param": None},
    ],
    ids=lambda event: event["type"],
)
def test_a_failed_response_raises_its_error(event: dict[str, Any]) -> None:
    with pytest.raises(ResponseFailed) as raised:
        ResponseBuilder().add(event)

    assert (raised.value.body["code"], raised.value.body["message"]) == (
        "server_error",
        "The server had an error.",
    )


def test_deltas_are_shown_as_they_arrive() -> None:
    builder = ResponseBuilder()

    deltas = [
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text}
        for text in ("I ", "add.")
    ]

    assert "".join(map(builder.add, deltas)) == "I add."


def test_results_are_outputs_with_pictures_in_them() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    results = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "3"},
        {
            "type": "tool_result",
            "tool_use_id": "c2",
            "content": [{"type": "text", "text": "Look:"}, picture],
        },
        {"type": "tool_result", "tool_use_id": "c3", "content": "no", "is_error": True},
        {"type": "text", "text": "A note."},
    ]

    hello, *outputs, note = input_items([*HELLO, {"role": "user", "content": results}])

    assert hello == {"type": "message", "role": "user", "content": "Hello"}
    assert [each["output"] for each in outputs] == [
        "3",
        [
            {"type": "input_text", "text": "Look:"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        ],
        "error: no",
    ]
    assert note["content"] == "A note."


def test_blocks_of_another_provider_are_sent_without_what_it_kept() -> None:
    blocks = [
        {"type": "thinking", "thinking": "Hm.", "kept": {"openai": {"texts": ["reasoning"]}}},
        {"type": "text", "text": "Hi.", "kept": {"openai": {"x": 1}}},
        {"type": "tool_use", "id": "a", "name": "add", "input": {}, "kept": {"openai": {"call": {}}}},
    ]

    items = input_items([{"role": "assistant", "content": blocks}])

    assert [item["type"] for item in items] == ["message", "function_call"]
    assert "openai" not in str(items)
