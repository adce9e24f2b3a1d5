"""Answers that do not end: a client ends them by the agent's time, and keeps what is whole."""

from __future__ import annotations

import pytest

from fdstore.agents.loop.models.base import TimeIsOver
from tests.dialects import current, every_dialect
from tests.unit.agents.loop.endless_server import (
    COMMENT,
    HEAD,
    WHOLE,
    begun,
    client_of,
    endless,
    error,
    streamed,
    whole,
)
from tests.waiting import stretched

TRIES = "fdstore.agents.loop.models.tries"


@every_dialect
@pytest.mark.parametrize(
    ("beginning", "drip"),
    [
        (b"", COMMENT),
        (b"", b"d"),
        (HEAD.removesuffix(b"\r\n"), b"x-more: b\r\n"),
        (error(500), b"a"),
        (HEAD.replace(b"text/event-stream", b"application/json"), b" "),
    ],
    ids=["comments", "bytes", "headers", "error", "document"],
)
def test_the_agents_time_ends_an_answer_that_goes_on(
    beginning: bytes, drip: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{TRIES}.SLACK_S", stretched(0.5))

    with (
        endless(beginning or begun(), drip) as server,
        client_of(server) as client,
        pytest.raises(TimeIsOver, match="time is over before the answer is whole"),
    ):
        client.query(within_s=0)

    assert server.requests == 1


@every_dialect
def test_a_whole_answer_is_kept_though_its_stream_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{TRIES}.LAST_WORDS_S", 0.2)

    with endless(whole()) as server, client_of(server) as client:
        assert client.query().text == "Hi."

    assert server.requests == 1


@pytest.mark.thorough("seconds of waiting")
@every_dialect
def test_a_whole_answer_is_kept_though_the_agents_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{TRIES}.SLACK_S", 2.0)

    with endless(whole()) as server, client_of(server) as client:
        assert client.query(within_s=0).text == "Hi."


@every_dialect
def test_a_whole_answer_is_kept_though_its_connection_breaks() -> None:
    broken = whole().replace(b"connection: close", b"connection: close\r\ncontent-length: 1000000")

    with endless(broken, b"") as server, client_of(server) as client:
        assert client.query().text == "Hi."

    assert server.requests == 1


@every_dialect
def test_what_follows_the_end_of_an_answer_counts_its_tokens() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    more = streamed([usage]) if current().provider == "openai" else b""

    with endless(whole() + more, b"") as server, client_of(server) as client:
        answer = client.query()

    assert not answer.is_estimated
    assert answer.input_tokens == (7 if more else 1)


@every_dialect
@pytest.mark.parametrize("end", [b"", b"data: [DONE]\n\n"], ids=["bare", "done"])
def test_the_connection_of_a_whole_answer_is_used_again(end: bytes) -> None:
    body = streamed(WHOLE[current().provider]) + end
    head = HEAD.replace(b"connection: close", b"content-length: %d" % len(body))

    with endless(head + body, b"") as server, client_of(server) as client:
        assert [client.query().text for _ in range(3)] == ["Hi."] * 3

    assert (server.requests, len(server.connections)) == (3, 1)
