"""`ScriptedModel` speaks the APIs of OpenAI: their SDK must see what the script says, and what they refuse is
refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest

from fdstore.testing import Script, ScriptedModel, call, cut, fail, garbled, say, signed, think, turn
from fdstore.testing.rules import RequestRefused
from fdstore.testing.server import DIALECTS
from tests.thorough import thorough

HELLO: Any = [{"role": "user", "content": "Hello"}]
SCHEMA = {"type": "object", "properties": {"fd": {"type": "string"}}}
CHAT_TOOL: Any = {"type": "function", "function": {"name": "read_fd", "parameters": SCHEMA}}
TOOL: Any = {"type": "function", "name": "read_fd", "parameters": SCHEMA, "strict": False}
SIGNATURE = {"extra_content": {"google": {"thought_signature": "s"}}}


@contextmanager
def playing(script: Script, **more: Any) -> Iterator[tuple[ScriptedModel, openai.OpenAI]]:
    with (
        ScriptedModel(script, **more) as model,
        openai.OpenAI(
            base_url=model.openai_base_url, api_key=model.api_key, max_retries=0, timeout=20
        ) as client,
    ):
        yield model, client


# what the SDK sees


def test_a_completion_has_the_text_the_reasoning_and_the_calls_of_the_script() -> None:
    script = [turn(think("Hm."), say("I read."), signed(call("read_fd", fd="fd:1"), **SIGNATURE))]

    with playing(script) as (_, client):
        answer = client.chat.completions.create(model="m", messages=HELLO, tools=[CHAT_TOOL])

    [choice] = answer.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "I read.")
    assert choice.message.to_dict()["reasoning_content"] == "Hm."
    [called] = choice.message.to_dict()["tool_calls"]
    assert called["function"] == {"name": "read_fd", "arguments": '{"fd":"fd:1"}'}
    assert called["extra_content"] == SIGNATURE["extra_content"]


def test_a_streamed_completion_is_the_same_in_pieces() -> None:
    script = [turn(say("A sentence."), call("read_fd", fd="fd:1"), call("read_fd", fd="fd:2"))]

    with (
        playing(script) as (_, client),
        client.chat.completions.stream(model="m", messages=HELLO, tools=[CHAT_TOOL]) as stream,
    ):
        [choice] = stream.get_final_completion().choices

    assert choice.message.content == "A sentence."
    arguments = [each.function.arguments for each in choice.message.tool_calls]
    assert arguments == ['{"fd":"fd:1"}', '{"fd":"fd:2"}']


@pytest.mark.parametrize("streamed", [*thorough("it imports what streams", True), False])
def test_a_response_has_the_items_of_the_script(streamed: bool) -> None:
    script = [turn(think("Hm."), say("I read."), call("read_fd", fd="fd:1"))]
    asked: Any = {
        "model": "m",
        "input": "Hello",
        "tools": [TOOL],
        "include": ["reasoning.encrypted_content"],
        "store": False,
    }

    with playing(script) as (_, client):
        if streamed:
            with client.responses.stream(**asked) as stream:
                answer: Any = stream.get_final_response()
        else:
            answer = client.responses.create(**asked)

    reasoning, message, called = answer.output
    assert (reasoning.summary[0].text, reasoning.encrypted_content[:9]) == ("Hm.", "scripted-")
    assert (message.content[0].text, answer.output_text) == ("I read.", "I read.")
    assert (called.name, called.arguments, answer.status) == ("read_fd", '{"fd":"fd:1"}', "completed")


def test_reasoning_is_encrypted_only_for_a_request_that_asks_for_it() -> None:
    with (
        playing([turn(think("Hm."), say("Hi."))]) as (_, client),
        client.responses.stream(model="m", input="Hello") as stream,
    ):
        assert stream.get_final_response().output[0].encrypted_content is None


def test_tokens_are_sent_at_the_end_of_a_stream_that_asks_for_them() -> None:
    with playing([say("Hi.")] * 2) as (_, client):
        counted = [
            [
                chunk.usage is not None
                for chunk in client.chat.completions.create(
                    model="m", messages=HELLO, stream=True, stream_options=options
                )
            ]
            for options in ({"include_usage": True}, None)
        ]

    assert (counted[0][-1], any(counted[0][:-1]), any(counted[1])) == (True, False, False)


def test_failures_have_the_errors_of_the_sdk() -> None:
    with playing([fail(429), fail(400, message="no"), cut(say("x"), 1, fail(500))]) as (_, client):
        with pytest.raises(openai.RateLimitError, match="script says"):
            client.chat.completions.create(model="m", messages=HELLO)
        with pytest.raises(openai.BadRequestError, match="no"):
            client.responses.create(model="m", input="Hello")
        with pytest.raises(openai.APIError, match="script says"):
            list(client.chat.completions.create(model="m", messages=HELLO, stream=True))


def test_one_script_answers_all_three_apis_in_the_order_of_requests() -> None:
    with playing([say("one"), say("two")]) as (model, client):
        first = client.chat.completions.create(model="m", messages=HELLO)
        second = client.responses.create(model="m", input="Hello", instructions="Be brief.")

    assert (first.choices[0].message.content, second.output_text) == ("one", "two")
    assert [request.last_text() for request in model.requests] == ["Hello", "Hello"]
    assert model.requests[1].system == "Be brief."


def test_the_environment_of_a_model_is_enough_for_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedModel([say("found")]) as model:
        for name, value in model.environ.items():
            monkeypatch.setenv(name, value)
        with openai.OpenAI() as client:
            assert client.responses.create(model="m", input="Hello").output_text == "found"


def test_a_call_that_is_not_json_is_sent_as_it_is() -> None:
    with playing([garbled("read_fd", '{"fd": ')]) as (_, client):
        answer: Any = client.chat.completions.create(model="m", messages=HELLO, tools=[CHAT_TOOL])

    assert answer.choices[0].message.tool_calls[0].function.arguments == '{"fd": '


# what a request says


CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "read_fd", "arguments": '{"fd":"fd:1"}'}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "A page."}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}
FUNCTION_CALL = {"type": "function_call", "call_id": "c1", "name": "read_fd", "arguments": '{"fd":"fd:1"}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "A page."}
CONVERSATIONS: dict[str, Any] = {
    "chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            *HELLO,
            CALLED,
            RESULT,
            {"role": "user", "content": "A note."},
        ],
    },
    "responses": {
        "model": "m",
        "instructions": "Be brief.",
        "input": [*HELLO, FUNCTION_CALL, OUTPUT, {"role": "user", "content": "A note."}],
    },
}


@pytest.mark.parametrize("api", CONVERSATIONS)
def test_requests_of_all_apis_are_read_alike(api: str) -> None:
    request = DIALECTS[api].read(CONVERSATIONS[api], {})

    DIALECTS[api].check(CONVERSATIONS[api])
    assert (request.system, request.turn_number, request.last_text()) == ("Be brief.", 1, "A page.\nA note.")
    assert request.tool_results() == [("c1", "A page.", False)]
    [called] = request.messages[1]["content"][-1:]
    assert called == {"type": "tool_use", "id": "c1", "name": "read_fd", "input": {"fd": "fd:1"}}


@pytest.mark.parametrize("api", CONVERSATIONS)
def test_a_result_that_begins_with_error_is_one(api: str) -> None:
    raw = {
        "messages": [*HELLO, CALLED, {**RESULT, "content": "error: no such file"}],
        "input": [*HELLO, FUNCTION_CALL, {**OUTPUT, "output": "error: no such file"}],
    }

    [result] = DIALECTS[api].read(raw, {}).tool_results()

    assert (result.text, result.is_error) == ("no such file", True)


# what is refused


def test_a_rule_that_is_broken_is_an_error_of_the_api() -> None:
    with (
        playing([say("Hi.")]) as (model, client),
        pytest.raises(openai.BadRequestError, match="tool_call_id"),
    ):
        client.chat.completions.create(model="m", messages=[*HELLO, CALLED])

    assert len(model.requests) == 1


TWO = {**CALLED, "tool_calls": [CALLED["tool_calls"][0], {**CALLED["tool_calls"][0], "id": "c2"}]}
CHAT_RULES: list[tuple[list[Any], str]] = [
    ([], "messages"),
    ([{"role": "model", "content": "x"}], "role"),
    ([{"role": "user", "content": ""}], "must not be empty"),
    ([{"role": "user", "content": []}], "must not be empty"),
    ([{"role": "user", "content": [{"type": "text", "text": " "}]}], "must not be empty"),
    ([*HELLO, {"role": "assistant", "content": ""}], "must not be empty"),
    ([*HELLO, {**CALLED, "tool_calls": []}], "must not be empty"),
    ([*HELLO, CALLED], "respond to each `tool_call_id`"),
    ([*HELLO, TWO, RESULT], "these have none: c2"),
    ([*HELLO, TWO, RESULT, *HELLO], "these have none: c2"),
    ([*HELLO, CALLED, RESULT, RESULT], "response to a preceding message"),
    ([*HELLO, RESULT], "response to a preceding message"),
    ([*HELLO, CALLED, {**RESULT, "content": ""}], "must not be empty"),
    (
        [*HELLO, CALLED, {**RESULT, "content": [{"type": "image_url", "image_url": {"url": "u"}}]}],
        "must be text",
    ),
    (
        [*HELLO, {**CALLED, "tool_calls": CALLED["tool_calls"] * 2}, RESULT, RESULT],
        "ids must be unique",
    ),
    (
        [*HELLO, {**CALLED, "tool_calls": [{**CALLED["tool_calls"][0], "id": "x" * 65}]}],
        "1 to 64 characters",
    ),
    (
        [
            *HELLO,
            {
                **CALLED,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "read_fd", "arguments": '{"fd'}}
                ],
            },
        ],
        "the JSON of an object",
    ),
    (
        [
            *HELLO,
            {
                "role": "assistant",
                "content": "Hi.",
                "reasoning_details": [{"text": "Other.", "signature": "scripted-0"}],
            },
        ],
        "as they were received",
    ),
]


@pytest.mark.parametrize(("messages", "problem"), CHAT_RULES, ids=str)
def test_chat_completions_refuse_a_conversation_that_breaks_a_rule(messages: list[Any], problem: str) -> None:
    with pytest.raises(RequestRefused, match=problem):
        DIALECTS["chat"].check({"model": "m", "messages": messages})


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"max_tokens": 5, "max_completion_tokens": 5}, "together"),
        ({"stream_options": {"include_usage": True}}, "when stream is true"),
        ({"tools": [CHAT_TOOL, CHAT_TOOL]}, "unique"),
        ({"tools": []}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": "a", "parameters": {}}}]}, '"object"'),
    ],
    ids=str,
)
def test_chat_completions_refuse_parameters_that_break_a_rule(more: dict[str, Any], problem: str) -> None:
    with pytest.raises(RequestRefused, match=problem):
        DIALECTS["chat"].check({"model": "m", "messages": HELLO, **more})


ANSWER = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}
RESPONSES_RULES: list[tuple[Any, str]] = [
    ("", "must not be empty"),
    ([], "must not be empty"),
    ([{"role": "user", "content": []}], "must not be empty"),
    ([{"role": "user", "content": [{"type": "text", "text": "x"}]}], "cannot be here"),
    ([*HELLO, FUNCTION_CALL], "no tool output found for function call c1"),
    ([*HELLO, FUNCTION_CALL, *HELLO, OUTPUT], "no tool output found for function call c1"),
    ([*HELLO, OUTPUT], "no tool call found"),
    ([*HELLO, FUNCTION_CALL, OUTPUT, OUTPUT], "no tool call found"),
    ([*HELLO, FUNCTION_CALL, FUNCTION_CALL, OUTPUT], "unique"),
    ([*HELLO, {**FUNCTION_CALL, "arguments": "["}, OUTPUT], "the JSON of an object"),
    ([*HELLO, FUNCTION_CALL, {**OUTPUT, "output": ""}], "must not be empty"),
    ([*HELLO, REASONING, *HELLO], "without the item that follows"),
    ([*HELLO, ANSWER, REASONING], "without the item that follows"),
    ([*HELLO, {**REASONING, "encrypted_content": None}, ANSWER], "no encrypted content"),
    ([*HELLO, {**REASONING, "encrypted_content": "scripted-0"}, ANSWER], "as it was received"),
]


@pytest.mark.parametrize(("items", "problem"), RESPONSES_RULES, ids=str)
def test_the_responses_api_refuses_a_conversation_that_breaks_a_rule(items: Any, problem: str) -> None:
    with pytest.raises(RequestRefused, match=problem):
        DIALECTS["responses"].check({"model": "m", "input": items})


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"tools": [{**TOOL, "strict": None}]}, "additionalProperties"),
        ({"previous_response_id": "resp_1"}, "stores no responses"),
    ],
    ids=str,
)
def test_the_responses_api_refuses_parameters_that_break_a_rule(more: dict[str, Any], problem: str) -> None:
    with pytest.raises(RequestRefused, match=problem):
        DIALECTS["responses"].check({"model": "m", "input": "Hello", **more})
