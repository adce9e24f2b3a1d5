"""Failures of the model that the client retries, and answers that it asks for again."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from fdstore.agents.loop.conversation import decode_entry, encode_entry
from fdstore.agents.loop.models.anthropic import AnthropicModel
from fdstore.agents.loop.models.base import ModelFailed
from fdstore.agents.loop.models.tries import LONGEST_PAUSE_S, QUICK_TRIES, READABLE_TRIES
from fdstore.testing import ScriptedModel, Usage, call, cut, fail, garbled, say, turn
from tests.dialects import every_dialect, every_dialect_that_types_errors
from tests.recording_server import recording
from tests.unit.agents.loop.model_client import ADD, HELLO, ClientUnderTest, open_client


@every_dialect
@pytest.mark.parametrize(
    "failure",
    [
        *(fail(status) for status in (408, 409, 429, 500, 502, 503, 504, 529)),
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


@every_dialect_that_types_errors
def test_a_failure_whose_type_is_that_of_an_overload_is_retried_whatever_its_status() -> None:
    script = [fail(400, type="overloaded_error"), say("Back again.")]

    with ScriptedModel(script) as scripted, open_client(scripted) as client:
        assert client.query().text == "Back again."


@every_dialect
def test_pauses_between_retries_grow_with_jitter() -> None:
    with ScriptedModel([fail(529)] * 4 + [say("Hi.")]) as scripted, open_client(scripted) as client:
        client.query()

    for pause, expected in zip(client.pauses, [0.5, 1, 2, 4], strict=True):
        assert 0.75 * expected <= pause <= 1.25 * expected


def test_pauses_between_retries_have_a_maximum() -> None:
    with ScriptedModel([fail(529)] * 10 + [say("Hi.")]) as scripted, open_client(scripted) as client:
        client.query(within_s=3600)

    assert max(client.pauses) <= 1.25 * LONGEST_PAUSE_S


@every_dialect
@pytest.mark.parametrize(("asked_s", "paused_s"), [(0.007, 0.007), (2.5, 2.5), (100_000, 300)])
def test_retry_after_of_the_server_sets_the_pause(asked_s: float, paused_s: float) -> None:
    with (
        ScriptedModel([fail(429, retry_after=asked_s), say("Hi.")]) as scripted,
        open_client(scripted) as client,
    ):
        client.query(within_s=3600)

    assert client.pauses == [pytest.approx(paused_s)]


class Stop(Exception):
    pass


def pauses_after(headers: dict[str, str], count: int) -> list[float]:
    """Return the first pauses of a client whose server answers 429 with these headers."""
    pauses: list[float] = []

    def pause(pause_s: float) -> None:
        pauses.append(pause_s)
        if len(pauses) == count:
            raise Stop

    with (
        recording(429, {"content-type": "application/json", **headers}, b"{}") as server,
        closing(AnthropicModel(api_key="any", base_url=server.url)) as model,
        pytest.raises(Stop),
    ):
        ClientUnderTest(model).query(within_s=3600, pause=pause)
    return pauses


@pytest.mark.parametrize("name", ["retry-after", "retry-after-ms"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "-inf", "soon", "Mon, 99 Foo 2026 07:28:00 GMT"])
def test_a_retry_after_that_asks_for_no_pause_is_left_out(name: str, value: str) -> None:
    for pause_s, backoff_s in zip(pauses_after({name: value}, 3), [0.5, 1, 2], strict=True):
        assert 0.75 * backoff_s <= pause_s <= 1.25 * backoff_s


def test_a_server_is_not_asked_as_often_as_it_likes() -> None:
    pauses = pauses_after({"retry-after": "0.001"}, QUICK_TRIES + 2)

    assert pauses[:QUICK_TRIES] == [0.001] * QUICK_TRIES
    for pause_s, backoff_s in zip(pauses[QUICK_TRIES:], [4, 8], strict=True):
        assert 0.75 * backoff_s <= pause_s <= 1.25 * backoff_s


def test_retry_after_counts_if_its_milliseconds_cannot_be_read() -> None:
    assert pauses_after({"retry-after-ms": "nan", "retry-after": "7"}, 1) == [7]


@pytest.mark.parametrize("date", ["Wed, 21 Oct 2099 07:28:00 GMT", "Wed, 21 Oct 2099 07:28:00"])
def test_retry_after_may_be_a_date(date: str) -> None:
    assert pauses_after({"retry-after": date}, 1) == [300]


def test_a_date_that_is_over_asks_for_no_pause() -> None:
    [pause_s] = pauses_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 1)

    assert 0.375 <= pause_s <= 0.625


@every_dialect
def test_an_exception_raised_by_the_pause_ends_the_retries() -> None:
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
        pytest.raises(ModelFailed, match=r"the answer broke off.*time ends before the next try"),
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
    '{"a": 1e400}',
    '{"a": [1, {"b": [-1e999]}]}',
    '{"a": [Infinity]}',
    '["a"]',
    '"a"',
    "{}{}",
    '{"a": ' + "9" * 5000 + "}",
    '{"a": ' + "[" * 500 + "]" * 500 + "}",
    '{"a": ' + "[" * 50_000,
]


@every_dialect
@pytest.mark.parametrize("arguments", MALFORMED, ids=lambda arguments: arguments[:16])
def test_an_answer_with_a_call_that_is_not_json_is_retried(arguments: str) -> None:
    script = [garbled("add", arguments), call("add", a=1)]

    with ScriptedModel(script) as scripted, open_client(scripted) as client:
        answer = client.query(tools=[ADD])

    assert (answer.calls[0]["input"], answer.malformed) == ({"a": 1}, {})
    assert len(scripted.requests) == 2


@every_dialect
@pytest.mark.parametrize("arguments", MALFORMED, ids=lambda arguments: arguments[:16])
def test_a_call_that_is_never_json_is_kept_in_the_form_that_the_api_accepts(arguments: str) -> None:
    usage = Usage(input_tokens=10, output_tokens=1)
    said = turn(say("I add."), garbled("add", arguments), usage=usage)

    with (
        ScriptedModel([said] * READABLE_TRIES + [say("Done.")]) as scripted,
        open_client(scripted) as client,
    ):
        answer = client.query(tools=[ADD])
        [called] = answer.calls
        result = {"type": "tool_result", "tool_use_id": called["id"], "content": "no", "is_error": True}
        back = [
            *HELLO,
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": [result]},
        ]
        assert client.query(messages=back, tools=[ADD]).text == "Done."

    assert len(scripted.requests) == READABLE_TRIES + 1
    assert list(answer.malformed) == [called["id"]]
    assert called["input"] == {"INVALID_JSON": arguments[:2000]}
    assert (answer.input_tokens, answer.output_tokens) == (10 * READABLE_TRIES, READABLE_TRIES)
    assert decode_entry(encode_entry(answer).encode()) == answer


@every_dialect
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
    b'event: content_block_start\ndata: {"type":"content_block_start","index":null,"content_block":{}}\n\n',
    b"event: content_block_start\ndata: [1]\n\n",
    b'event: content_block_delta\ndata: "s"\n\n',
    b"event: message_delta\ndata: null\n\n",
]


@pytest.mark.parametrize("event", UNREADABLE)
def test_an_answer_that_stays_unreadable_fails_with_the_reason(event: bytes) -> None:
    with (
        client_of_server(BEGINNING + event) as (client, server),
        pytest.raises(ModelFailed, match="cannot be read"),
    ):
        client.query()

    assert server.requests == READABLE_TRIES
