"""Whatever a server streams is an answer that the journal can store, or `ValueError`; it never breaks a
worker."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fdstore.agents.loop.answer import AnswerBuilder
from fdstore.agents.loop.conversation import Assistant, decode_entry, encode_entry
from fdstore.agents.loop.models.openai_chat_form import REASONING_FIELDS, ChatAnswerBuilder, chat_messages
from fdstore.agents.loop.models.openai_responses_form import ResponseBuilder, ResponseFailed, input_items

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object of which any field may be missing or something else."""
    return st.fixed_dictionaries({}, optional={name: each | values for name, each in fields.items()})


names = st.sampled_from(["add", "mul", ""])
arguments = st.sampled_from(["", "{}", '{"a": ', "1}", '{"b": 2}', "[", "\ud83d", "\ude00"])
functions = some(name=names, arguments=arguments, thought_signature=st.text(max_size=4))
pieces = some(
    index=st.integers(0, 2),
    id=st.sampled_from(["a", "b", ""]),
    type=st.just("function"),
    function=functions,
    extra_content=values,
)
deltas = some(
    content=st.text(max_size=8),
    refusal=st.text(max_size=8),
    tool_calls=st.lists(pieces, max_size=3),
    function_call=functions,
    **dict.fromkeys(REASONING_FIELDS, values),
)
choices = some(
    index=st.just(0), delta=deltas, finish_reason=st.sampled_from([None, "stop", "tool_calls", "length"])
)
usages = some(
    prompt_tokens=st.integers(),
    completion_tokens=st.integers(),
    prompt_tokens_details=some(cached_tokens=st.integers()),
)
chunks = some(choices=st.lists(choices, max_size=2), usage=usages) | values

parts = some(
    type=st.sampled_from(["output_text", "refusal", "summary_text"]),
    text=st.text(max_size=8),
    refusal=st.text(max_size=8),
)
items = some(
    type=st.sampled_from(["message", "function_call", "reasoning", "web_search_call"]),
    id=st.text(max_size=4),
    call_id=st.sampled_from(["a", "b"]),
    name=names,
    arguments=arguments,
    content=st.lists(parts, max_size=2),
    summary=st.lists(parts, max_size=2),
    encrypted_content=st.text(max_size=4),
)
responses = some(
    output=st.lists(items, max_size=3),
    usage=some(input_tokens=st.integers(), output_tokens=st.integers()),
    incomplete_details=some(reason=st.sampled_from(["max_output_tokens", "content_filter"])),
    error=some(code=st.text(max_size=4), message=st.text(max_size=4)),
)
kinds = ["output_item.done", "output_text.delta", "refusal.delta", "completed", "incomplete", "failed"]
events = (
    some(
        type=st.sampled_from(["error", *(f"response.{kind}" for kind in kinds)]),
        output_index=st.integers(0, 3),
        item=items,
        delta=st.text(max_size=8),
        response=responses,
    )
    | values
)

blocks = some(
    type=st.sampled_from(["text", "tool_use", "thinking", "server_tool_use", "other"]),
    text=st.text(max_size=4),
    id=st.sampled_from(["a", "b", "\ud83d"]),
    name=names,
    input=values,
    citations=values,
)
pieces_of_blocks = some(
    type=st.sampled_from(["text_delta", "input_json_delta", "citations_delta", "thinking_delta"]),
    text=st.text(max_size=4),
    partial_json=arguments,
    citation=values,
    thinking=st.text(max_size=4),
)
counts = some(input_tokens=values, output_tokens=values, cache_read_input_tokens=values)
messages = (
    some(
        type=st.sampled_from(
            ["message_start", "content_block_start", "content_block_delta", "message_delta"],
        ),
        index=st.integers(0, 2),
        message=some(usage=counts),
        content_block=blocks,
        delta=pieces_of_blocks | some(stop_reason=st.sampled_from(["tool_use", "end_turn", "\ud83d"])),
        usage=counts,
    )
    | values
)


def stored(answer: Assistant) -> list[dict[str, Any]]:
    """Return the message of an answer that a journal has stored."""
    entry = decode_entry(encode_entry(answer).encode("utf-8"))
    assert entry == answer
    return [{"role": "assistant", "content": answer.content}]


@given(st.lists(chunks, max_size=6))
def test_any_chunks_of_chat_completions_are_an_answer_or_unreadable(stream: list[Any]) -> None:
    builder = ChatAnswerBuilder()
    try:
        for chunk in stream:
            assert isinstance(builder.add(chunk), str)
        answer = builder.finish()
    except ValueError:
        return

    chat_messages("", stored(answer))


@given(st.lists(events, max_size=6))
def test_any_events_of_the_responses_api_are_an_answer_or_unreadable(stream: list[Any]) -> None:
    builder = ResponseBuilder()
    try:
        for event in stream:
            assert isinstance(builder.add(event), str)
        answer = builder.finish()
    except (ValueError, ResponseFailed):
        return

    input_items(stored(answer))


@given(st.lists(messages, max_size=6))
def test_any_events_of_the_messages_api_are_an_answer_or_unreadable(stream: list[Any]) -> None:
    builder = AnswerBuilder()
    try:
        for event in stream:
            assert isinstance(builder.add(event), str)
        answer = builder.finish()
    except ValueError:
        return

    stored(answer)
