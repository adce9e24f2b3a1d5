"""Clients of OpenAI's APIs on a scripted model: what servers do not know, tokens, URLs, and headers."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from fdstore.agents.loop.models.base import ModelFailed, PromptTooLong
from fdstore.testing import (
    Quirk,
    Request,
    ScriptedModel,
    Turn,
    Usage,
    call,
    cut,
    fail,
    say,
    signed,
    think,
    turn,
)
from tests.dialects import DIALECTS, DialectUnderTest, every_openai
from tests.unit.agents.loop.model_client import ADD, HELLO, ClientUnderTest, open_client

CHAT = DIALECTS["openai"]
chat_alone = pytest.mark.parametrize("dialect", ["openai"], indirect=True)
responses_alone = pytest.mark.parametrize("dialect", ["openai-responses"], indirect=True)


def names_in(scripted: ScriptedModel, *names: str) -> list[set[str]]:
    """Return which of these names each request had."""
    return [set(names) & request.raw.keys() for request in scripted.requests]


@every_openai
def test_a_request_is_streamed_and_stored_nowhere(dialect: DialectUnderTest) -> None:
    with ScriptedModel([say("Hi.")]) as scripted, open_client(scripted) as client:
        client.query(tools=[ADD], parameters={"max_tokens": 100, "temperature": 0.5})

    [request] = scripted.requests
    assert (request.system, request.tools, request.last_text()) == ("Be brief.", ("add",), "Hello")
    assert (request.raw["stream"], request.raw["temperature"]) == (True, 0.5)
    if dialect.provider == "openai":
        assert (request.raw["max_completion_tokens"], "max_tokens" in request.raw) == (100, False)
    else:
        assert (request.raw["max_output_tokens"], request.raw["store"]) == (100, False)
        assert request.raw["include"] == ["reasoning.encrypted_content"]


@pytest.mark.parametrize(
    ("dialect", "name"),
    [("openai", "max_completion_tokens"), ("openai-responses", "max_output_tokens")],
    indirect=["dialect"],
)
def test_a_limit_that_the_program_names_itself_is_the_only_one(name: str) -> None:
    with ScriptedModel([say("Hi.")]) as scripted, open_client(scripted) as client:
        client.query(parameters={"max_tokens": 8192, name: 50})

    raw = scripted.requests[0].raw
    assert (raw[name], "max_tokens" in raw) == (50, False)


@chat_alone
def test_what_a_server_does_not_know_is_left_out_from_then_on() -> None:
    refuses = ("max_completion_tokens", "stream_options")
    with ScriptedModel([say("Hi.")] * 2, refuses=refuses) as scripted, open_client(scripted) as client:
        first, second = client.query(), client.query()

    assert (first.text, second.text, client.pauses) == ("Hi.", "Hi.", [])
    assert names_in(scripted, "max_tokens", *refuses) == [
        {"max_completion_tokens", "stream_options"},
        {"max_tokens", "stream_options"},
        {"max_tokens"},
        {"max_tokens"},
    ]


@responses_alone
def test_a_server_that_encrypts_nothing_is_asked_without() -> None:
    with ScriptedModel([say("Hi.")], refuses=["include"]) as scripted, open_client(scripted) as client:
        assert client.query().text == "Hi."

    assert names_in(scripted, "include") == [{"include"}, set()]


@chat_alone
def test_a_limit_that_is_too_large_is_not_taken_for_one_that_is_not_known() -> None:
    too_large = "max_completion_tokens is too large: 100. This model supports at most 50 completion tokens"

    with (
        ScriptedModel([fail(400, message=too_large)]) as scripted,
        open_client(scripted) as client,
        pytest.raises(ModelFailed, match="is too large"),
    ):
        client.query()

    assert len(scripted.requests) == 1


@chat_alone
def test_a_server_that_takes_no_reasoning_back_is_asked_without() -> None:
    script = [turn(think("Hm."), call("add", a=1)), say("Done.")]

    with (
        ScriptedModel(script, refuses=["reasoning_content"]) as scripted,
        open_client(scripted) as client,
    ):
        first = client.query(tools=[ADD])
        client.query(tools=[ADD], messages=continued(first))

    assert ["reasoning_content" in request.raw["messages"][-2] for request in scripted.requests[1:]] == [
        True,
        False,
    ]


def continued(answer: Any, result: str = "3") -> list[dict[str, Any]]:
    """Return the messages after an answer with calls."""
    results = [{"type": "tool_result", "tool_use_id": each["id"], "content": result} for each in answer.calls]
    return [*HELLO, {"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]


@every_openai
def test_reasoning_and_signatures_are_sent_back_as_they_came() -> None:
    extra = {"extra_content": {"google": {"thought_signature": "EpwB+/=="}}}
    script = [turn(think("Hm."), say("I add."), signed(call("add", a=1), **extra)), say("Done.")]

    with ScriptedModel(script) as scripted, open_client(scripted) as client:
        first = client.query(tools=[ADD])
        # the scripted model refuses reasoning that was altered
        client.query(tools=[ADD], messages=continued(first))

    _, second = scripted.requests
    assert [block["type"] for block in second.messages[1]["content"]] == ["thinking", "text", "tool_use"]
    assert extra["extra_content"] in extra_contents(second)


def extra_contents(request: Request) -> list[Any]:
    calls = [call for message in request.raw.get("messages", ()) for call in message.get("tool_calls", ())]
    return [
        each["extra_content"] for each in [*calls, *request.raw.get("input", ())] if "extra_content" in each
    ]


# servers


ALL_CALLS = turn(say("Both."), call("add", a=1), call("add", b=[2]))


@chat_alone
@pytest.mark.parametrize(
    "quirks",
    [
        ("whole_arguments",),
        ("repeated_ids",),
        ("no_ids",),
        ("no_index",),
        ("same_index",),
        ("empty_deltas",),
        ("wrong_finish",),
        ("no_done",),
        ("whole_arguments", "no_ids", "no_index"),
        ("whole_arguments", "no_ids", "same_index", "wrong_finish", "no_done"),
        ("repeated_ids", "no_index", "empty_deltas"),
        ("no_ids", "no_index"),
    ],
    ids=repr,
)
def test_calls_arrive_whole_from_servers_that_stream_them_in_another_way(quirks: tuple[Quirk, ...]) -> None:
    with ScriptedModel([ALL_CALLS, say("Done.")], quirks=quirks) as scripted, open_client(scripted) as client:
        answer = client.query(tools=[ADD])
        # their ids are good for the next request
        assert client.query(tools=[ADD], messages=continued(answer)).text == "Done."

    assert (answer.text, answer.stop_reason) == ("Both.", "tool_use")
    assert [call["input"] for call in answer.calls] == [{"a": 1}, {"b": [2]}]


@every_openai
def test_a_stream_that_closes_without_its_end_is_asked_for_again() -> None:
    with ScriptedModel([say("Half.")] * 9, quirks=["no_finish"]) as scripted, open_client(scripted) as client:
        with pytest.raises(ModelFailed, match="the answer broke off"):
            client.query(within_s=2)

        assert len(scripted.requests) >= 2


@every_openai
def test_tokens_of_a_server_that_counts_none_are_estimated_and_said_to_be(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        caplog.at_level(logging.WARNING),
        ScriptedModel([say("word " * 100)] * 2, quirks=["no_usage"]) as scripted,
        open_client(scripted) as client,
    ):
        answers = [client.query(system="word " * 1000) for _ in range(2)]

    for answer in answers:
        assert answer.is_estimated
        assert 800 < answer.input_tokens < 1300
        assert 80 < answer.output_tokens < 200
    assert [record.message for record in caplog.records] == [
        "any: its server counts no tokens; they are estimated"
    ]


@every_openai
def test_counted_tokens_are_not_estimated() -> None:
    usage = Usage(input_tokens=10, output_tokens=5, cache_read_input_tokens=3000)

    with ScriptedModel([turn(say("Hi."), usage=usage)]) as scripted, open_client(scripted) as client:
        answer = client.query()

    assert (answer.is_estimated, answer.input_tokens, answer.cache_read_tokens) == (False, 3010, 3000)


@every_openai
@pytest.mark.parametrize("text", ["I cannot.", ""])
def test_a_refusal_and_a_content_filter_end_as_a_refusal(text: str) -> None:
    said = turn(*([say(text)] if text else []), stop_reason="refusal")

    with ScriptedModel([said]) as scripted, open_client(scripted) as client:
        answer = client.query()

    assert (answer.text, answer.stop_reason, answer.is_last) == (text, "refusal", True)


# failures


@every_openai
@pytest.mark.parametrize(
    "failure",
    [
        fail(400, message="the request exceeds the available context size, try increasing it"),
        fail(400, message="Your input exceeds the context window of this model."),
        fail(400, message="The input token count (9000) exceeds the maximum number of tokens allowed."),
        fail(400, type="exceed_context_size_error"),
        cut(say("x"), after_events=1, error=fail(400, type="context_length_exceeded")),
    ],
    ids=repr,
)
def test_servers_word_a_conversation_that_is_too_long_in_many_ways(failure: Any) -> None:
    with (
        ScriptedModel([failure]) as scripted,
        open_client(scripted) as client,
        pytest.raises(PromptTooLong),
    ):
        client.query()


@every_openai
def test_an_account_without_credit_is_not_asked_again() -> None:
    with ScriptedModel([fail(429, type="insufficient_quota")]) as scripted, open_client(scripted) as client:
        with pytest.raises(ModelFailed, match="429 insufficient_quota"):
            client.query()

        assert client.pauses == []


@pytest.mark.parametrize(
    ("dialect", "with_v1", "other"),
    [("openai", False, "/v1"), ("openai", True, ""), ("openai-responses", False, "/v1")],
    indirect=["dialect"],
)
def test_a_404_names_the_other_form_of_the_url(dialect: DialectUnderTest, with_v1: bool, other: str) -> None:
    with ScriptedModel([fail(404, message="model: gpt-9")]) as scripted:
        server = scripted.base_url if with_v1 else scripted.base_url.removesuffix("/v1")
        path = "/v1" if with_v1 else ""
        model = dialect._replace(path=path).client(server, api_key=scripted.api_key)
        with pytest.raises(ModelFailed, match=rf"404 .*base_url, of which another form is {server}{other}\Z"):
            ClientUnderTest(model).query()
        model.close()


def test_a_failure_names_the_variable_that_holds_the_key() -> None:
    with ScriptedModel([]) as scripted:
        model = CHAT.client(scripted.base_url, api_key="wrong", key_name="OPENROUTER_KEY")
        with pytest.raises(ModelFailed, match="check OPENROUTER_KEY"):
            ClientUnderTest(model).query()
        model.close()


@every_openai
def test_the_variables_of_the_sdk_are_a_pair(
    dialect: DialectUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedModel([say("Hi.")]) as scripted:
        monkeypatch.setenv("OPENAI_API_KEY", scripted.api_key)
        monkeypatch.setenv("OPENAI_BASE_URL", scripted.openai_base_url)
        monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
        model = type(dialect.client("http://127.0.0.1:9", api_key="any"))()

        assert ClientUnderTest(model).query().text == "Hi."
        model.close()

    assert scripted.requests[0].headers["openai-organization"] == "org-1"


@every_openai
def test_nothing_of_the_variables_goes_to_a_server_that_is_named(
    dialect: DialectUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    monkeypatch.setenv("OPENAI_ORG_ID", "secret-org")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "secret-project")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: secret-header\nX-Mine: secret-mine")

    with ScriptedModel([say("Hi.")]) as scripted:
        model = dialect.client(scripted.base_url, api_key=scripted.api_key)
        assert ClientUnderTest(model).query().text == "Hi."
        model.close()

    [request] = scripted.requests
    assert "secret" not in str(request.headers)
    assert request.headers["authorization"] == f"Bearer {scripted.api_key}"


@every_openai
def test_a_server_without_a_key_gets_none(dialect: DialectUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")

    with ScriptedModel([]) as scripted:
        model = dialect.client(scripted.base_url, api_key="")
        # the scripted model wants a key
        with pytest.raises(ModelFailed, match="401 "):
            ClientUnderTest(model).query()
        model.close()


@every_openai
def test_an_answer_is_shown_as_it_arrives() -> None:
    class Shown:
        text = ""

        def on_text(self, text: str) -> None:
            self.text += text

        def on_retry(self) -> None:
            self.text += "|"

    shown = Shown()
    script: list[Turn | Any] = [cut(say("Half a sentence."), after_events=4), say("A sentence.")]
    with ScriptedModel(script) as scripted, open_client(scripted) as client:
        client.query(listener=shown)

    half, whole = shown.text.split("|")
    assert "Half a sentence.".startswith(half)
    assert half
    assert whole == "A sentence."
