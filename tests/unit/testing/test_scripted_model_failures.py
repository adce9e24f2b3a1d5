"""Failures, cuts and pauses of a scripted model, as the SDK sees them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import anthropic
import httpx2
import pytest

from fdstore.testing import ScriptedModel, cut, fail, held, say, slow
from tests.unit.testing.sdk_client import HELLO, client_of, created, event_names, playing, streamed
from tests.waiting import PATIENCE_S


def test_a_failure_raises_the_matching_sdk_error() -> None:
    script = [fail(429), fail(529, message="busy"), fail(500), fail(400, "billing_error")]

    with playing(script) as (_, client):
        with pytest.raises(anthropic.RateLimitError, match="rate_limit_error"):
            created(client)
        with pytest.raises(anthropic.APIStatusError, match="busy") as overloaded:
            streamed(client)
        with pytest.raises(anthropic.InternalServerError, match="api_error"):
            created(client)
        with pytest.raises(anthropic.BadRequestError, match="billing_error"):
            created(client)

    assert overloaded.value.status_code == 529
    assert overloaded.value.request_id == "req_0002"


def test_the_sdk_retries_after_the_retry_after_of_a_failure() -> None:
    script = [fail(529, retry_after=0.02), fail(429, retry_after=0.02), say("At last.")]

    with ScriptedModel(script) as model, client_of(model, retries=2) as client:
        answer = streamed(client)

    assert answer.content[0].to_dict()["text"] == "At last."
    assert len(model.requests) == 3
    assert model.requests[2].headers["x-stainless-retry-count"] == "2"


def test_retry_after_is_whole_seconds_and_exact_milliseconds() -> None:
    with (
        playing([fail(529, retry_after=1.25)]) as (_, client),
        pytest.raises(anthropic.APIStatusError) as caught,
    ):
        created(client)

    headers = caught.value.response.headers
    assert (headers["retry-after"], headers["retry-after-ms"]) == ("2", "1250")


@pytest.mark.parametrize("after_events", [0, 1, 4, 100])
def test_a_cut_stream_shows_its_first_events_and_no_end(after_events: int) -> None:
    seen: list[str] = []

    with (
        pytest.raises((httpx2.RemoteProtocolError, anthropic.APIConnectionError)),
        playing([cut(say("abcdef"), after_events)]) as (_, client),
    ):
        seen.extend(event_names(client))

    assert len(seen) == min(after_events, 9)


def test_a_cut_answer_without_a_stream_breaks_off_too() -> None:
    with (
        playing([cut(say("abcdef"), 1)]) as (_, client),
        pytest.raises((httpx2.RemoteProtocolError, anthropic.APIConnectionError)),
    ):
        created(client)


def test_a_stream_can_end_with_an_error_of_the_api() -> None:
    script = [cut(say("abcdef"), 4, error=fail(529, message="overloaded in mid-answer")), say("again")]

    with playing(script) as (_, client):
        with pytest.raises(anthropic.APIStatusError, match="overloaded in mid-answer"):
            streamed(client)
        assert streamed(client).content[0].to_dict()["text"] == "again"


def test_closing_ends_a_slow_answer_immediately() -> None:
    model = ScriptedModel([slow(say("never"), 600)])

    with client_of(model) as client, ThreadPoolExecutor() as pool:
        asked = pool.submit(created, client)
        model.wait_for(1, PATIENCE_S)
        model.close()
        with pytest.raises(anthropic.APIConnectionError):
            asked.result(PATIENCE_S)


def test_a_slow_answer_can_be_any_answer() -> None:
    with playing([slow(say("late"), 0.01), slow(fail(429), 0.01)]) as (_, client):
        assert created(client).content[0].to_dict()["text"] == "late"
        with pytest.raises(anthropic.RateLimitError):
            created(client)


def test_a_held_answer_stands_still_until_it_is_released() -> None:
    release = threading.Event()

    with (
        playing([held(say("abcdef"), 4, release)]) as (_, client),
        client.messages.stream(model="m", max_tokens=100, messages=HELLO) as stream,
    ):
        bits = stream.text_stream
        first = next(bits)
        release.set()
        rest = list(bits)

    assert (first, rest) == ("ab", ["cd", "ef"])


def test_closing_ends_a_held_answer_immediately() -> None:
    model = ScriptedModel([held(say("never"), 4, threading.Event())])

    with client_of(model) as client, ThreadPoolExecutor() as pool:
        asked = pool.submit(streamed, client)
        model.wait_for(1, PATIENCE_S)
        model.close()
        with pytest.raises((anthropic.APIError, httpx2.HTTPError)):
            asked.result(PATIENCE_S)
