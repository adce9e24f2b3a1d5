"""The model client on a scripted Messages API: its requests, how it parses answers, which failures it retries
and the errors that it raises."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fdstore.agents.loop.models.anthropic import AnthropicModel
from fdstore.agents.loop.models.base import DeferralRefused, ModelFailed, PromptTooLong
from fdstore.agents.loop.models.tries import REQUESTS_PER_CLIENT
from fdstore.model.providers import KEY_VARIABLES
from fdstore.testing import Cut, Request, ScriptedModel, Turn, Usage, call, cut, fail, say, slow, think, turn
from tests.dialects import DialectUnderTest, every_dialect, every_dialect_with_a_key
from tests.unit.agents.loop.model_client import ADD, HELLO, ClientUnderTest, open_client
from tests.waiting import PATIENCE_S, stretched


class Heard:
    """A listener that keeps the texts of an answer."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def on_text(self, text: str) -> None:
        self.texts.append(text)

    def on_retry(self) -> None:
        self.texts.clear()


LATER = {**ADD, "defer_loading": True}

# requests and answers


@every_dialect
def test_the_answer_of_a_server_that_does_not_stream_is_taken_whole() -> None:
    heard = Heard()
    said = turn(
        say("Two at once."),
        call("add", a=1.5, b=[None]),
        call("add"),
        usage=Usage(input_tokens=70, output_tokens=5),
    )
    script = [said, cut(say("Half."), after_events=1), say("Done.")]

    with (
        ScriptedModel(script, quirks=["not_streamed"]) as scripted,
        open_client(scripted) as client,
    ):
        answer, whole = client.query(tools=[ADD], listener=heard), client.query()

    assert [block["type"] for block in answer.content] == ["text", "tool_use", "tool_use"]
    assert answer.calls[0]["input"] == {"a": 1.5, "b": [None]}
    assert (answer.stop_reason, answer.input_tokens, answer.output_tokens) == ("tool_use", 70, 5)
    assert ("".join(heard.texts), whole.text, len(client.pauses)) == ("Two at once.", "Done.", 1)


def test_a_request_is_streamed_with_the_parameters_of_the_program() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2000}
    parameters = {"max_tokens": 3000, "thinking": thinking, "stop_sequences": ["STOP"]}

    with ScriptedModel([say("Hi.")]) as scripted, open_client(scripted) as client:
        client.query(parameters=parameters, tools=[ADD])

    [request] = scripted.requests
    assert request.raw["stream"] is True
    assert (request.system, request.tools) == ("Be brief.", ("add",))
    assert (request.raw["max_tokens"], request.raw["thinking"]) == (3000, thinking)
    assert request.raw["stop_sequences"] == ["STOP"]


def test_an_empty_system_prompt_and_no_tools_are_left_out() -> None:
    with ScriptedModel([say("Hi.")]) as scripted, open_client(scripted) as client:
        client.query(system="", tools=[])

    assert {"system", "tools"}.isdisjoint(scripted.requests[0].raw)


def test_an_answer_keeps_every_block_in_the_form_that_the_api_accepts() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
    said = turn(think("Hm."), say("Two at once."), call("add", a=1.5, b=[None]), search, call("add"))

    with ScriptedModel([said, say("Done.")]) as scripted, open_client(scripted) as client:
        answer = client.query(tools=[ADD])
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "3"} for block in answer.calls
        ]
        back = [
            *HELLO,
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": results},
        ]
        # the scripted model refuses a thinking block that was altered, and any other that lost its shape
        again = client.query(messages=back, tools=[ADD])

    assert [block["type"] for block in answer.content] == [
        "thinking",
        "text",
        "tool_use",
        "server_tool_use",
        "tool_use",
    ]
    assert answer.calls[0]["input"] == {"a": 1.5, "b": [None]}
    assert (answer.stop_reason, answer.text, again.text) == ("tool_use", "Two at once.", "Done.")


@every_dialect
@pytest.mark.parametrize("stop_reason", ["max_tokens", "pause_turn", "refusal", "one_nobody_knows_yet"])
def test_any_stop_reason_is_preserved(stop_reason: str) -> None:
    said = turn(say("Half a sen"), stop_reason=stop_reason)

    with ScriptedModel([said]) as scripted, open_client(scripted) as client:
        assert client.query().stop_reason == stop_reason


@every_dialect
@pytest.mark.parametrize("stop_reason", ["end_turn", "stop_sequence", "pause_turn", "tool_calls"])
def test_an_answer_with_a_call_is_one_whatever_stop_reason_a_server_gives(stop_reason: str) -> None:
    said = turn(say("I add."), call("add", a=1), stop_reason=stop_reason)

    with ScriptedModel([said]) as scripted, open_client(scripted) as client:
        answer = client.query(tools=[ADD])

    assert (answer.stop_reason, answer.is_last, len(answer.calls)) == ("tool_use", False, 1)


@every_dialect
@pytest.mark.parametrize("stop_reason", ["max_tokens", "refusal", "model_context_window_exceeded"])
def test_calls_of_an_answer_that_was_cut_short_are_not_run(stop_reason: str) -> None:
    with (
        ScriptedModel([turn(call("add", a=1), stop_reason=stop_reason)]) as scripted,
        open_client(scripted) as client,
    ):
        answer = client.query(tools=[ADD])

    assert (answer.stop_reason, answer.is_last) == (stop_reason, True)


@every_dialect
def test_an_empty_answer_is_accepted() -> None:
    with ScriptedModel([turn()]) as scripted, open_client(scripted) as client:
        answer = client.query()

    assert (answer.content, answer.stop_reason) == ([], "end_turn")


@every_dialect
def test_cached_tokens_are_counted() -> None:
    usage = Usage(
        input_tokens=10, output_tokens=5, cache_creation_input_tokens=200, cache_read_input_tokens=3000
    )

    with ScriptedModel([turn(say("Hi."), usage=usage)]) as scripted, open_client(scripted) as client:
        answer = client.query()

    assert (answer.input_tokens, answer.output_tokens) == (3210, 5)


# permanent failures and deadlines


@every_dialect
@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (fail(400, message="max_tokens: too many"), "400{kind}: max_tokens: too many"),
        (fail(401, message="invalid x-api-key"), "401{kind}: invalid x-api-key; check {key}"),
        (fail(403), "403{kind}: .*{key}"),
        (fail(403, message="You may not use claude-9."), "You may not use claude-9; check .*{key}"),
        (fail(404, message="model: claude-9"), r"404{kind}: model: claude-9; check \[model\] name"),
        (fail(413), "413{kind}"),
        (fail(529, should_retry=False), "529{kind}"),
        (cut(say("x"), after_events=2, error=fail(400)), "the model answered.*{kind}: the script"),
    ],
    ids=repr,
)
def test_a_permanent_failure_is_not_retried_and_the_error_says_what_to_do(
    dialect: DialectUnderTest, failure: Any, words: str
) -> None:
    kind = dialect.kind((failure.error if isinstance(failure, Cut) else failure).type)
    with ScriptedModel([failure]) as scripted, open_client(scripted) as client:
        with pytest.raises(ModelFailed, match=words.format(key=dialect.key_name, kind=kind)):
            client.query()

        assert (len(scripted.requests), client.pauses) == (1, [])


@every_dialect
@pytest.mark.parametrize(
    ("failure", "is_for_length"),
    [
        (fail(400, message="prompt is too long: 208310 tokens > 200000 maximum"), True),
        (fail(400, message="input length and `max_tokens` exceed context limit: 199000 + 21333"), True),
        (fail(400, message="This model's maximum context length is 32768 tokens"), True),
        (fail(413, message="Request exceeds the maximum size"), True),
        (fail(413, type="proxy_error", message="Request Entity Too Large"), True),
        (fail(400, message="max_tokens: too many"), False),
        (fail(404, message="prompt is too long"), False),
    ],
    ids=repr,
)
def test_a_refusal_of_the_length_is_told_from_others(failure: Any, is_for_length: bool) -> None:
    with (
        ScriptedModel([failure]) as scripted,
        open_client(scripted) as client,
        pytest.raises(ModelFailed) as raised,
    ):
        client.query()

    assert isinstance(raised.value, PromptTooLong) == is_for_length


@pytest.mark.parametrize(
    ("failure", "tool", "is_for_deferral"),
    [
        (fail(400, message="tools.0.custom.defer_loading: Extra inputs are not permitted"), LATER, True),
        (fail(400, message="messages.2.content.0: Input tag 'tool_reference' is unknown"), LATER, True),
        (fail(400, message="Tool reference 'search_fd' not found in available tools"), LATER, True),
        (fail(400, message="defer_loading: Extra inputs are not permitted"), ADD, False),
        (fail(400, message="tools.0: the description is too long"), LATER, False),
        (fail(404, message="defer_loading"), LATER, False),
    ],
    ids=repr,
)
def test_a_refusal_of_deferred_tools_is_told_from_others(
    failure: Any, tool: dict[str, Any], is_for_deferral: bool
) -> None:
    with (
        ScriptedModel([failure]) as scripted,
        open_client(scripted) as client,
        pytest.raises(ModelFailed) as raised,
    ):
        client.query(tools=[tool, {**ADD, "name": "subtract"}])

    assert isinstance(raised.value, DeferralRefused) == is_for_deferral


@pytest.mark.parametrize(
    ("url", "takes_them"),
    [
        (None, True),
        ("https://api.anthropic.com/", True),
        ("https://api.anthropic.com.example.org", False),
        ("http://localhost:8080/api.anthropic.com", False),
    ],
)
def test_only_the_servers_of_anthropic_are_known_to_take_deferred_tools(
    monkeypatch: pytest.MonkeyPatch, url: str | None, takes_them: bool
) -> None:
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)

    model = AnthropicModel(api_key="any", base_url=url)

    assert model.takes_deferred_tools == takes_them
    model.close()


@every_dialect
def test_a_wrong_api_key_is_not_retried(dialect: DialectUnderTest) -> None:
    with ScriptedModel([]) as scripted:
        model = dialect.client(scripted.base_url, api_key="wrong")
        with pytest.raises(ModelFailed, match=f"check {dialect.key_name}"):
            ClientUnderTest(model).query()
        model.close()


@every_dialect_with_a_key
def test_a_missing_api_key_is_named_in_the_error(
    dialect: DialectUnderTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in (*KEY_VARIABLES, "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(ModelFailed, match=f"set {dialect.key_name}"):
        dialect.client("http://127.0.0.1:9")


@every_dialect
def test_a_long_error_message_is_cut() -> None:
    with ScriptedModel([fail(400, message="x" * 10_000)]) as scripted, open_client(scripted) as client:
        with pytest.raises(ModelFailed) as caught:
            client.query()

        assert len(str(caught.value)) < 600


@every_dialect
def test_retries_end_at_the_deadline_of_the_agent(dialect: DialectUnderTest) -> None:
    kind = dialect.kind("overloaded_error")
    with ScriptedModel([fail(529)] * 99) as scripted, open_client(scripted) as client:
        with pytest.raises(ModelFailed, match=f"529{kind}: .*the agent's time ends"):
            client.query(within_s=0.1)

        assert client.pauses == []


@every_dialect
def test_a_pause_that_would_pass_the_deadline_is_not_started() -> None:
    with ScriptedModel([fail(429, retry_after=60)]) as scripted, open_client(scripted) as client:
        with pytest.raises(ModelFailed, match="time ends before the next try"):
            client.query(within_s=30)

        assert client.pauses == []


@every_dialect
def test_a_silent_model_is_not_waited_for_beyond_the_deadline() -> None:
    silent: list[Turn | Any] = [slow(say("Late."), 30)]

    with ScriptedModel(silent) as scripted, open_client(scripted) as client:
        began = time.monotonic()
        with pytest.raises(ModelFailed, match="could not be reached: it was silent for 1 s"):
            client.query(within_s=0.5)

        assert time.monotonic() - began < stretched(5)


@every_dialect
def test_a_model_that_fails_for_longer_than_its_program_allows_fails_with_the_reason() -> None:
    said = r"529.*; no answer for [\d.]+ m?s, tries: \d; the next one would be after 1 s .*give_up_seconds"

    with ScriptedModel([fail(529)] * 99) as scripted, open_client(scripted) as client:
        with pytest.raises(ModelFailed, match=said):
            client.query(within_s=600, give_up_s=1, pause=time.sleep)

        assert len(scripted.requests) in (1, 2)


@every_dialect
def test_a_model_that_asks_for_a_longer_pause_than_is_left_fails_with_the_time_that_it_had() -> None:
    """Regression: the reason said that no answer came within 30 s, when the first try had just failed."""
    said = r"429.*; no answer for \d+ ms, tries: 1; the next one would be after 30 s"

    refusing, why = ScriptedModel([fail(429, retry_after=60)]), pytest.raises(ModelFailed, match=said)
    with refusing as scripted, open_client(scripted) as client, why:
        client.query(within_s=600, give_up_s=30)


@every_dialect
def test_a_silent_model_fails_after_the_time_that_its_program_allows() -> None:
    silent: list[Turn | Any] = [slow(say("Late."), 30)]
    why = pytest.raises(ModelFailed, match=r"reached: it was silent for 1 s; no answer for 1\.\d s, tries: 1")

    with ScriptedModel(silent) as scripted, open_client(scripted) as client, why:
        client.query(within_s=600, give_up_s=0.5)


@every_dialect
def test_each_retry_is_reported_with_its_reason_and_pause(dialect: DialectUnderTest) -> None:
    said: list[str] = []

    with ScriptedModel([fail(429, retry_after=2), say("Hi.")]) as scripted, open_client(scripted) as client:
        client.query(report=lambda retry: said.append(str(retry)))

    assert len(said) == 1
    assert said[0].startswith(f"try 1: the model answered 429{dialect.kind('rate_limit_error')}: ")
    assert said[0].endswith("; asking again in 2.0 s")


@every_dialect
def test_an_address_without_a_listener_is_retried_until_the_deadline(dialect: DialectUnderTest) -> None:
    with ScriptedModel([]) as scripted:
        address = scripted.base_url
    model = dialect.client(address, api_key="any")

    with pytest.raises(ModelFailed, match="could not be reached"):
        ClientUnderTest(model).query(within_s=0.2)
    model.close()


@pytest.mark.thorough("many connections")
@every_dialect
def test_more_requests_than_one_client_of_the_sdk_takes_run_at_once() -> None:
    count = 2 * REQUESTS_PER_CLIENT + 1
    together = threading.Barrier(count)

    def script(_: Request) -> Turn:
        together.wait(PATIENCE_S)
        return say("Hi.")

    with (
        ScriptedModel(script) as scripted,
        open_client(scripted) as client,
        ThreadPoolExecutor(count) as threads,
    ):
        for _ in range(2):
            answers = [threads.submit(client.query) for _ in range(count)]
            assert {answer.result(PATIENCE_S).stop_reason for answer in answers} == {"end_turn"}


@every_dialect
@pytest.mark.parametrize("url", ["http://host:port", "http://127.0.0.1:99999", "127.0.0.1:8080", "http://"])
def test_a_base_url_that_is_none_is_refused_at_once_by_its_name(dialect: DialectUnderTest, url: str) -> None:
    with pytest.raises(ModelFailed, match="base_url is not the URL of a server"):
        dialect.client(url, api_key="any")
