"""The model client on a scripted Messages API: its requests, how it parses answers, which failures it retries
and the errors that it raises."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fdstore.agent.conversation import Assistant, decode_entry, encode_entry
from fdstore.agent.models.anthropic import LONGEST_PAUSE_S, READABLE_TRIES, AnthropicModel
from fdstore.agent.models.base import ModelFailed
from fdstore.testing import ScriptedModel, Turn, Usage, call, cut, fail, garbled, say, slow, think, turn

HELLO = [{"role": "user", "content": "Hello"}]
ADD = {"name": "add", "description": "Adds.", "input_schema": {"type": "object", "properties": {}}}


class ClientUnderTest:
    """A model client on a scripted model, and its pauses between retries."""

    def __init__(self, model: AnthropicModel) -> None:
        self.model = model
        self.pauses: list[float] = []

    def query(self, *, within_s: float = 60.0, **more: Any) -> Assistant:
        request = {
            "model": "any",
            "system": "Be brief.",
            "messages": HELLO,
            "tools": [],
            "parameters": {"max_tokens": 100},
            "pause": self.pauses.append,
            **more,
        }
        return self.model.query(until_s=time.monotonic() + within_s, **request)


@contextmanager
def open_client(scripted: ScriptedModel) -> Iterator[ClientUnderTest]:
    model = AnthropicModel(api_key=scripted.api_key, base_url=scripted.base_url)
    try:
        yield ClientUnderTest(model)
    finally:
        model.close()


# requests and answers


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


@pytest.mark.parametrize("stop_reason", ["max_tokens", "pause_turn", "refusal", "one_nobody_knows_yet"])
def test_any_stop_reason_is_preserved(stop_reason: str) -> None:
    said = turn(say("Half a sen"), stop_reason=stop_reason)

    with ScriptedModel([said]) as scripted, open_client(scripted) as client:
        assert client.query().stop_reason == stop_reason


def test_an_empty_answer_is_accepted() -> None:
    with ScriptedModel([turn()]) as scripted, open_client(scripted) as client:
        answer = client.query()

    assert (answer.content, answer.stop_reason) == ([], "end_turn")


def test_cached_tokens_are_counted() -> None:
    usage = Usage(
        input_tokens=10, output_tokens=5, cache_creation_input_tokens=200, cache_read_input_tokens=3000
    )

    with ScriptedModel([turn(say("Hi."), usage=usage)]) as scripted, open_client(scripted) as client:
        answer = client.query()

    assert (answer.input_tokens, answer.output_tokens) == (3210, 5)


# retries


@pytest.mark.parametrize(
    "failure",
    [
        *(fail(status) for status in (408, 409, 429, 500, 502, 503, 504, 529)),
        fail(400, type="overloaded_error"),
        fail(400, should_retry=True),
        cut(say("Never whole."), after_events=0),
        cut(say("Never whole."), after_events=4),
        cut(say("Never whole."), after_events=3, error=fail(529)),
        cut(say("Never whole."), after_events=3, error=fail(500)),
    ],
    ids=repr,
)
def test_a_transient_failure_is_retried(failure: Any) -> None:
    with ScriptedModel([failure, failure, say("Back again.")]) as scripted, open_client(scripted) as client:
        answer = client.query()

    assert answer.text == "Back again."
    assert len(scripted.requests) == 3


def test_pauses_between_retries_grow_with_jitter() -> None:
    with ScriptedModel([fail(529)] * 4 + [say("Hi.")]) as scripted, open_client(scripted) as client:
        client.query()

    for pause, expected in zip(client.pauses, [0.5, 1, 2, 4], strict=True):
        assert 0.75 * expected <= pause <= 1.25 * expected


def test_pauses_between_retries_have_a_maximum() -> None:
    with ScriptedModel([fail(529)] * 10 + [say("Hi.")]) as scripted, open_client(scripted) as client:
        client.query(within_s=3600)

    assert max(client.pauses) <= 1.25 * LONGEST_PAUSE_S


@pytest.mark.parametrize(("asked_s", "paused_s"), [(0.007, 0.007), (2.5, 2.5), (100_000, 300)])
def test_retry_after_of_the_server_sets_the_pause(asked_s: float, paused_s: float) -> None:
    with (
        ScriptedModel([fail(429, retry_after=asked_s), say("Hi.")]) as scripted,
        open_client(scripted) as client,
    ):
        client.query(within_s=3600)

    assert client.pauses == [pytest.approx(paused_s)]


def test_an_exception_raised_by_the_pause_ends_the_retries() -> None:
    class Stop(Exception):
        pass

    def stop(_: float) -> None:
        raise Stop

    with ScriptedModel([fail(529)]) as scripted, open_client(scripted) as client, pytest.raises(Stop):
        client.query(pause=stop)

    assert len(scripted.requests) == 1


class StreamServer(http.server.BaseHTTPRequestHandler):
    """Send `stream` and close the connection cleanly, like a proxy that lost its upstream."""

    stream = b""
    requests = 0

    def do_POST(self) -> None:
        type(self).requests += 1
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(self.stream)

    def log_message(self, *_: Any) -> None:
        return


BEGINNING = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message",'
    b'"role":"assistant","model":"any","content":[],"stop_reason":null,"stop_sequence":null,'
    b'"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
)


@contextmanager
def client_of_server(stream: bytes) -> Iterator[tuple[ClientUnderTest, type[StreamServer]]]:
    """A client of a server that answers every request with `stream`."""
    handler = type("Handler", (StreamServer,), {"stream": stream, "requests": 0})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        model = AnthropicModel(api_key="any", base_url=f"http://127.0.0.1:{server.server_port}")
        try:
            yield ClientUnderTest(model), handler
        finally:
            model.close()
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("stream", [b"", BEGINNING])
def test_a_stream_that_closes_cleanly_before_the_answer_is_complete_is_retried(stream: bytes) -> None:
    with (
        client_of_server(stream) as (client, server),
        pytest.raises(ModelFailed, match=r"the answer broke off.*time was over"),
    ):
        client.query(within_s=2)

    assert server.requests >= 2


def streamed(block: dict[str, Any], *deltas: dict[str, Any]) -> bytes:
    """Return a complete answer of one block, in ASCII as some servers write JSON."""
    events = [
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    said = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return BEGINNING + "".join(said).encode("ascii")


TEXT = {"type": "text", "text": ""}
USE = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}}


def test_surrogate_pairs_are_joined_and_a_lone_surrogate_is_escaped() -> None:
    said = streamed(TEXT, *({"type": "text_delta", "text": part} for part in ("Hi \ud83d", "\ude00 \udc80.")))

    with client_of_server(said) as (client, _):
        answer = client.query()

    assert answer.text == "Hi \N{GRINNING FACE} \\udc80."
    assert decode_entry(encode_entry(answer).encode()) == answer


@pytest.mark.parametrize("arguments", ['{"a": "\ud800"}', '{"a": "\\ud800"}'])
def test_a_lone_surrogate_in_tool_arguments_is_escaped(arguments: str) -> None:
    said = streamed(USE, {"type": "input_json_delta", "partial_json": arguments})

    with client_of_server(said) as (client, _):
        assert client.query().content[0]["input"] == {"a": "\\ud800"}


MALFORMED = [
    '{"a": nonsense}',
    '{"a": 1, "b": ',
    '{"a": "line\nbreak"}',
    '{"a": NaN}',
    '["a"]',
    '"a"',
    "{}{}",
    '{"a": ' + "9" * 5000 + "}",
    '{"a": ' + "[" * 500 + "]" * 500 + "}",
    '{"a": ' + "[" * 50_000,
]


@pytest.mark.parametrize("arguments", MALFORMED, ids=lambda arguments: arguments[:16])
def test_an_answer_with_a_call_that_is_not_json_is_retried(arguments: str) -> None:
    script = [garbled("add", arguments), call("add", a=1)]

    with ScriptedModel(script) as scripted, open_client(scripted) as client:
        answer = client.query(tools=[ADD])

    assert (answer.calls[0]["input"], answer.malformed) == ({"a": 1}, {})
    assert len(scripted.requests) == 2


@pytest.mark.parametrize("arguments", MALFORMED, ids=lambda arguments: arguments[:16])
def test_a_call_that_is_never_json_is_kept_in_the_form_that_the_api_accepts(arguments: str) -> None:
    usage = Usage(input_tokens=10, output_tokens=1)
    said = turn(say("I add."), garbled("add", arguments, id="toolu_1"), usage=usage)

    with (
        ScriptedModel([said] * READABLE_TRIES + [say("Done.")]) as scripted,
        open_client(scripted) as client,
    ):
        answer = client.query(tools=[ADD])
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no", "is_error": True}
        back = [
            *HELLO,
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": [result]},
        ]
        assert client.query(messages=back, tools=[ADD]).text == "Done."

    assert len(scripted.requests) == READABLE_TRIES + 1
    assert list(answer.malformed) == ["toolu_1"]
    assert answer.calls[0]["input"] == {"INVALID_JSON": arguments[:2000]}
    assert (answer.input_tokens, answer.output_tokens) == (10 * READABLE_TRIES, READABLE_TRIES)
    assert decode_entry(encode_entry(answer).encode()) == answer


def test_a_call_cut_off_by_max_tokens_is_not_retried() -> None:
    said = turn(garbled("add", '{"a": 1, "b'), stop_reason="max_tokens")

    with ScriptedModel([said]) as scripted, open_client(scripted) as client:
        answer = client.query(tools=[ADD])

    assert (answer.stop_reason, answer.malformed) == ("max_tokens", {})


def test_the_journal_holds_calls_with_the_arguments_that_tools_receive() -> None:
    said = streamed(USE, {"type": "input_json_delta", "partial_json": '{"a": 1e400, "b": 1.0, "c": [1e22]}'})

    with client_of_server(said) as (client, _):
        answer = client.query()

    assert decode_entry(encode_entry(answer).encode()) == answer


def test_an_error_reason_can_be_stored_whatever_text_the_server_sent() -> None:
    assert str(ModelFailed("it said \udc80")) == "it said \\udc80"


UNREADABLE = [
    b"event: content_block_start\ndata: {nonsense\n\n",
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":4,"delta":{}}\n\n',
    b'event: content_block_start\ndata: {"type":"content_block_start"}\n\n',
]


@pytest.mark.parametrize("event", UNREADABLE)
def test_an_answer_that_stays_unreadable_fails_with_the_reason(event: bytes) -> None:
    with (
        client_of_server(BEGINNING + event) as (client, server),
        pytest.raises(ModelFailed, match="cannot be read"),
    ):
        client.query()

    assert server.requests == READABLE_TRIES


# permanent failures and deadlines


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (fail(400, message="max_tokens: too many"), "400 invalid_request_error: max_tokens: too many"),
        (fail(401, message="invalid x-api-key"), "401 .*: invalid x-api-key; check ANTHROPIC_API_KEY"),
        (fail(403), "403 permission_error: .*ANTHROPIC_API_KEY"),
        (fail(404, message="model: claude-9"), r"404 .*: model: claude-9; check \[model\] name"),
        (fail(413), "413 request_too_large"),
        (fail(529, should_retry=False), "529 overloaded_error"),
        (cut(say("x"), after_events=2, error=fail(400)), "the model answered invalid_request_error"),
    ],
    ids=repr,
)
def test_a_permanent_failure_is_not_retried_and_the_error_says_what_to_do(failure: Any, words: str) -> None:
    with ScriptedModel([failure]) as scripted, open_client(scripted) as client:
        with pytest.raises(ModelFailed, match=words):
            client.query()

        assert (len(scripted.requests), client.pauses) == (1, [])


def test_a_wrong_api_key_is_not_retried() -> None:
    with ScriptedModel([]) as scripted:
        model = AnthropicModel(api_key="wrong", base_url=scripted.base_url)
        with pytest.raises(ModelFailed, match="check ANTHROPIC_API_KEY"):
            ClientUnderTest(model).query()
        model.close()


def test_a_missing_api_key_is_named_in_the_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(ModelFailed, match="set ANTHROPIC_API_KEY"):
        AnthropicModel()


def test_a_long_error_message_is_cut() -> None:
    with ScriptedModel([fail(400, message="x" * 10_000)]) as scripted, open_client(scripted) as client:
        with pytest.raises(ModelFailed) as caught:
            client.query()

        assert len(str(caught.value)) < 600


def test_retries_end_at_the_deadline_of_the_agent() -> None:
    with ScriptedModel([fail(529)] * 99) as scripted, open_client(scripted) as client:
        with pytest.raises(ModelFailed, match=r"529 overloaded_error.*the agent's time was over"):
            client.query(within_s=0.1)

        assert client.pauses == []


def test_a_pause_that_would_pass_the_deadline_is_not_started() -> None:
    with ScriptedModel([fail(429, retry_after=60)]) as scripted, open_client(scripted) as client:
        with pytest.raises(ModelFailed, match="time was over"):
            client.query(within_s=30)

        assert client.pauses == []


def test_a_silent_model_is_not_waited_for_beyond_the_deadline() -> None:
    silent: list[Turn | Any] = [slow(say("Late."), 30)]

    with ScriptedModel(silent) as scripted, open_client(scripted) as client:
        began = time.monotonic()
        with pytest.raises(ModelFailed, match="could not be reached"):
            client.query(within_s=0.5)

        assert time.monotonic() - began < 5


def test_a_model_that_fails_for_longer_than_its_program_allows_fails_with_the_reason() -> None:
    with ScriptedModel([fail(529)] * 99) as scripted, open_client(scripted) as client:
        with pytest.raises(ModelFailed, match=r"529 .*; no answer within 1 s .*give_up_seconds.*, tries: \d"):
            client.query(within_s=600, give_up_s=1, pause=time.sleep)

        assert len(scripted.requests) in (1, 2)


def test_a_silent_model_fails_after_the_time_that_its_program_allows() -> None:
    silent: list[Turn | Any] = [slow(say("Late."), 30)]
    why = pytest.raises(ModelFailed, match=r"could not be reached: .*; no answer within 0.5 s")

    with ScriptedModel(silent) as scripted, open_client(scripted) as client, why:
        client.query(within_s=600, give_up_s=0.5)


def test_each_retry_is_reported_with_its_reason_and_pause() -> None:
    said: list[str] = []

    with ScriptedModel([fail(429, retry_after=2), say("Hi.")]) as scripted, open_client(scripted) as client:
        client.query(report=lambda retry: said.append(str(retry)))

    assert len(said) == 1
    assert said[0].startswith("try 1: the model answered 429 rate_limit_error: ")
    assert said[0].endswith("; asking again in 2.0 s")


def test_an_address_without_a_listener_is_retried_until_the_deadline() -> None:
    with ScriptedModel([]) as scripted:
        address = scripted.base_url
    model = AnthropicModel(api_key="any", base_url=address)

    with pytest.raises(ModelFailed, match="could not be reached"):
        ClientUnderTest(model).query(within_s=0.2)
    model.close()
