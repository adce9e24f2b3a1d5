"""The scripted model through the real SDK: replies arrive complete, requests that break the API's rules are
refused, and mistakes in a script fail its test."""

from __future__ import annotations

import asyncio
import doctest
import http.client
import inspect
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import anthropic
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fdstore.testing
from fdstore.testing import (
    Request,
    Script,
    ScriptedModel,
    Turn,
    Usage,
    call,
    cut,
    fail,
    garbled,
    held,
    say,
    slow,
    think,
    turn,
)
from fdstore.testing.wire import message, whole

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
READ_FD: Any = {
    "name": "read_fd",
    "input_schema": {"type": "object", "properties": {"fd": {"type": "string"}}},
}
CALLED: Any = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "toolu_0001", "name": "f", "input": {}}],
}
RESULT: Any = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "toolu_0001", "content": "r"}],
}
STOP_REASONS = [
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "something_new",
]


@contextmanager
def client_of(model: ScriptedModel, retries: int = 0) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(
        base_url=model.base_url, api_key=model.api_key, max_retries=retries, timeout=20
    ) as client:
        yield client


@contextmanager
def playing(script: Script, retries: int = 0) -> Iterator[tuple[ScriptedModel, anthropic.Anthropic]]:
    with ScriptedModel(script) as model, client_of(model, retries) as client:
        yield model, client


def created(client: anthropic.Anthropic, **changes: Any) -> anthropic.types.Message:
    return client.messages.create(**{"model": "m", "max_tokens": 100, "messages": HELLO, **changes})


def streamed(client: anthropic.Anthropic, **changes: Any) -> anthropic.types.Message:
    with client.messages.stream(**{"model": "m", "max_tokens": 100, "messages": HELLO, **changes}) as stream:
        return stream.get_final_message()


def event_names(client: anthropic.Anthropic) -> Iterator[str]:
    with client.messages.with_streaming_response.create(
        model="m", max_tokens=9, messages=HELLO, stream=True
    ) as response:
        for line in response.iter_lines():
            if line.startswith("event: "):
                yield line.removeprefix("event: ")


ways = pytest.mark.parametrize("ask", [created, streamed])
Ask = Callable[..., anthropic.types.Message]


# What the model says


@ways
def test_a_text_arrives_complete(ask: Ask) -> None:
    with playing([say("Grüße, 世界 🌍!\n")]) as (_, client):
        answer = ask(client)

    assert [block.to_dict() for block in answer.content] == [{"type": "text", "text": "Grüße, 世界 🌍!\n"}]
    assert answer.stop_reason == "end_turn"


@ways
def test_a_tool_call_arrives_with_its_arguments_and_an_id_of_its_own(ask: Ask) -> None:
    script = [call("read_fd", fd="fd:1", count=2), call("lookup", {"id": 7, "name": "é"}, id="toolu_x")]

    with playing(script) as (_, client):
        first, second = ask(client), ask(client)

    block = first.content[0].to_dict()
    assert block.pop("id").startswith("toolu_")
    assert block == {"type": "tool_use", "name": "read_fd", "input": {"fd": "fd:1", "count": 2}}
    assert first.stop_reason == "tool_use"
    assert second.content[0].to_dict()["id"] == "toolu_x"
    assert second.content[0].to_dict()["input"] == {"id": 7, "name": "é"}


@ways
def test_a_turn_holds_thinking_text_and_parallel_calls_in_order(ask: Ask) -> None:
    script = [turn(think("Hm."), say("Both."), call("a"), call("b", x=[1, {"y": None}]))]

    with playing(script) as (_, client):
        answer = ask(client)

    assert [block.type for block in answer.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert answer.content[0].to_dict()["thinking"] == "Hm."
    assert answer.content[0].to_dict()["signature"]
    assert len({block.to_dict()["id"] for block in answer.content[2:]}) == 2
    assert answer.content[3].to_dict()["input"] == {"x": [1, {"y": None}]}


@ways
@pytest.mark.parametrize("reason", STOP_REASONS)
def test_a_stop_reason_can_be_any(ask: Ask, reason: str) -> None:
    script = [turn(say("half"), stop_reason=reason, stop_sequence="END")]

    with playing(script) as (_, client):
        answer = ask(client)

    assert answer.stop_reason == reason
    assert answer.stop_sequence == "END"


@ways
def test_a_turn_may_be_empty_or_hold_a_block_of_any_type(ask: Ask) -> None:
    block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}

    with playing([turn(), turn(block, stop_reason="pause_turn")]) as (_, client):
        empty, searching = ask(client), ask(client)

    assert (empty.content, empty.stop_reason) == ([], "end_turn")
    assert searching.content[0].to_dict() == block


@ways
def test_usage_is_estimated_unless_the_script_gives_it(ask: Ask) -> None:
    exact = Usage(input_tokens=11, output_tokens=22, cache_read_input_tokens=33)

    with playing([say("x"), turn(say("x"), usage=exact)]) as (_, client):
        estimated = ask(client, messages=[{"role": "user", "content": "word " * 800}])
        given_ = ask(client)

    assert 1000 <= estimated.usage.input_tokens <= 1100
    assert estimated.usage.output_tokens > 0
    assert (given_.usage.input_tokens, given_.usage.output_tokens) == (11, 22)
    assert given_.usage.cache_read_input_tokens == 33


def test_a_stream_has_the_events_of_the_api_in_their_order() -> None:
    with playing([turn(say("abcdef"), call("f", a=1))]) as (_, client):
        names = list(event_names(client))

    assert names[:3] == ["message_start", "content_block_start", "ping"]
    assert names[3:7] == ["content_block_delta"] * 3 + ["content_block_stop"]
    assert names[7:9] == ["content_block_start", "content_block_delta"]
    assert names[-3:] == ["content_block_stop", "message_delta", "message_stop"]


@given(st.text(), st.dictionaries(st.text(), st.text() | st.integers(-(2**53), 2**53) | st.none()))
def test_deltas_join_to_the_original_text_and_arguments(text: str, arguments: dict[str, Any]) -> None:
    said = turn(say(text), call("f", arguments))
    finished = message(said, id="msg", model="m", call_ids=iter(["toolu"]), input_tokens=1)

    events = [json.loads(piece.split(b"data: ", 1)[1]) for piece in whole(finished, streamed=True).pieces]

    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == text
    assert json.loads("".join(delta.get("partial_json", "") for delta in deltas)) == arguments


# Failures


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
        model.wait_for(1)
        model.close()
        with pytest.raises(anthropic.APIConnectionError):
            asked.result(timeout=20)


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
        model.wait_for(1)
        model.close()
        with pytest.raises((anthropic.APIError, httpx2.HTTPError)):
            asked.result(timeout=20)


# Scripts


def test_an_exhausted_script_reports_it_and_counts_the_request() -> None:
    with playing([say("only")]) as (model, client):
        created(client)
        with pytest.raises(
            anthropic.BadRequestError, match="script is over: it has 1 replies and this is request 2"
        ):
            created(client)

    assert len(model.requests) == 2


def test_a_script_function_receives_the_tool_results() -> None:
    def script(request: Request) -> Turn:
        if request.turn_number == 0:
            return turn(say("Reading."), call("read_fd", fd="fd:1"))
        ((call_id, text, is_error),) = request.tool_results()
        return say(f"{call_id} {text} {is_error} {request.last_text()}")

    with playing(script) as (model, client):
        first = streamed(client, tools=[READ_FD])
        result = {
            "type": "tool_result",
            "tool_use_id": first.content[1].to_dict()["id"],
            "is_error": True,
            "content": [{"type": "text", "text": "no"}],
        }
        history = [
            *HELLO,
            first.to_param(),
            {"role": "user", "content": [result, {"type": "text", "text": "go on"}]},
        ]
        second = created(
            client, tools=[READ_FD], messages=history, system=[{"type": "text", "text": "Be brief."}]
        )

    assert second.content[0].to_dict()["text"] == f"{result['tool_use_id']} no True no\ngo on"
    assert model.requests[1].tools == ("read_fd",)
    assert model.requests[1].system == "Be brief."
    assert model.requests[1].raw["max_tokens"] == 100
    assert model.requests[1].headers["anthropic-version"]


def test_a_mapping_has_a_script_for_each_program() -> None:
    script: Script = {
        "You are a clerk": [say("c1"), say("c2")],
        "You are": lambda request: say(request.system),
    }

    with playing(script) as (_, client):
        answers = [
            created(client, system=system).content[0].to_dict()["text"]
            for system in ("You are a clerk.", "You are an expert.", "You are a clerk.")
        ]
        with pytest.raises(anthropic.BadRequestError, match="'You are a clerk', 'You are'"):
            created(client, system="Nobody")

    assert answers == ["c1", "You are an expert.", "c2"]


def test_an_exception_in_a_script_reaches_the_agent_once_and_the_test_at_the_end() -> None:
    def script(request: Request) -> Turn:
        assert "fd:1" in request.last_text(), "the agent forgot the descriptor"
        return say("fine")

    model = ScriptedModel(script)
    with (
        client_of(model, retries=5) as client,
        pytest.raises(anthropic.InternalServerError, match="the agent forgot the descriptor"),
    ):
        streamed(client)

    assert len(model.requests) == 1
    with pytest.raises(AssertionError, match="the agent forgot the descriptor"):
        model.close()
    model.close()


def test_an_outcome_of_pytest_raised_by_a_script_fails_the_test() -> None:
    def script(request: Request) -> Turn:
        pytest.fail("not like this")

    with (
        pytest.raises(pytest.fail.Exception, match="not like this") as caught,
        playing(script) as (_, client),
    ):
        created(client)

    assert isinstance(caught.value.__context__, anthropic.InternalServerError)


def test_a_script_must_consist_of_replies() -> None:
    with pytest.raises(TypeError, match="the script gave a str"):
        ScriptedModel(["hello"])
    with pytest.raises(TypeError, match="not str"):
        ScriptedModel("hello")
    with (
        pytest.raises(TypeError, match="the function gave a NoneType"),
        playing(lambda request: None) as (_, client),
    ):
        created(client)


def test_invalid_reply_content_is_refused_at_construction() -> None:
    with pytest.raises(TypeError, match="object"):
        call("f", x=object())
    with pytest.raises(ValueError, match="surrogates"):
        say("\ud800")
    with pytest.raises(ValueError, match="needs a type"):
        turn({"text": "t"})
    with pytest.raises(ValueError, match="from 0"):
        cut(say("t"), -1)


def test_no_two_calls_of_any_models_have_the_same_id() -> None:
    ids = []
    for _ in range(2):
        with playing([call("f"), call("f")]) as (_, client):
            ids += [created(client).content[0].to_dict()["id"] for _ in range(2)]

    assert len(set(ids)) == 4


def test_arguments_that_are_not_json_are_streamed_as_they_are() -> None:
    with playing([garbled("f", '{"a": nonsense}')]) as (_, client):
        stream = client.messages.create(model="any", max_tokens=9, messages=HELLO, stream=True)
        deltas = [event.delta.to_dict() for event in stream if event.type == "content_block_delta"]

    assert "".join(delta["partial_json"] for delta in deltas) == '{"a": nonsense}'


# Other clients and endpoints


def test_the_async_client_streams_and_creates() -> None:
    async def ask(model: ScriptedModel) -> list[str | None]:
        async with anthropic.AsyncAnthropic(base_url=model.base_url, api_key=model.api_key) as client:
            one = await client.messages.create(model="m", max_tokens=9, messages=HELLO)
            async with client.messages.stream(model="m", max_tokens=9, messages=HELLO) as stream:
                two = await stream.get_final_message()
            return [one.stop_reason, two.stop_reason]

    with ScriptedModel([say("a"), call("f")]) as model:
        assert asyncio.run(ask(model)) == ["end_turn", "tool_use"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("thread", [False, True])
def test_the_beta_tool_runner_runs_tools_with_and_without_server_threads(stream: bool, thread: bool) -> None:
    @anthropic.beta_tool
    def double(n: int) -> str:
        """Twice n."""
        return str(2 * n)

    script = [turn(call("double", n=2), call("double", n=5)), say("4 and 10")]
    with playing(script) as (model, client):
        extra: Any = {} if thread else {"thread": False}
        runner = client.beta.messages.tool_runner(
            model="m", max_tokens=100, messages=HELLO, tools=[double], stream=stream, **extra
        )
        answer = runner.until_done()

    assert answer.content[0].to_dict()["text"] == "4 and 10"
    assert [result.text for result in model.requests[1].tool_results()] == ["4", "10"]
    assert len(model.requests) == 2


def test_the_environment_of_a_model_is_enough_for_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedModel([say("found")]) as model:
        for name, value in model.environ.items():
            monkeypatch.setenv(name, value)
        with anthropic.Anthropic() as client:
            assert created(client).content[0].to_dict()["text"] == "found"


def test_tokens_are_counted_without_a_script() -> None:
    with playing([]) as (model, client):
        counted = client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "x" * 4000}])

    assert 1000 <= counted.input_tokens <= 1050
    assert model.requests == ()


def test_an_unknown_address_and_a_wrong_key_are_refused() -> None:
    with playing([]) as (model, client):
        with pytest.raises(anthropic.NotFoundError, match="GET /v1/models"):
            client.models.list()
        with pytest.raises(anthropic.AuthenticationError, match="invalid API key"):
            created(client.with_options(api_key="other"))

    assert model.requests == ()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "must be a JSON object"),
        (b"[" * 100_000, "not valid JSON"),
        (b"", "not valid JSON"),
    ],
)
def test_a_body_that_is_not_a_json_object_is_refused_and_the_connection_lives_on(
    body: bytes, problem: str
) -> None:
    with ScriptedModel([]) as model:
        connection = http.client.HTTPConnection(model.base_url.removeprefix("http://"), timeout=20)
        headers = {"x-api-key": model.api_key, "anthropic-version": "2023-06-01"}
        for _ in range(2):
            connection.request("POST", "/v1/messages", body, headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
            assert (response.status, answer["type"]) == (400, "error")
            assert problem in answer["error"]["message"]
        connection.close()


def test_several_hundred_agents_can_ask_concurrently() -> None:
    together = threading.Barrier(300)

    def script(request: Request) -> Turn:
        together.wait(timeout=60)
        return say(request.last_text())

    async def ask_all(model: ScriptedModel) -> list[str]:
        async with anthropic.AsyncAnthropic(
            base_url=model.base_url, api_key=model.api_key, timeout=60
        ) as client:

            async def ask(number: int) -> str:
                async with client.messages.stream(
                    model="m", max_tokens=9, messages=[{"role": "user", "content": f"n{number}"}]
                ) as stream:
                    return await stream.get_final_text()

            return await asyncio.gather(*(ask(number) for number in range(300)))

    with ScriptedModel(script) as model:
        answers = asyncio.run(ask_all(model))

    assert answers == [f"n{number}" for number in range(300)]
    assert len(model.requests) == 300


def test_requests_are_answered_in_the_order_in_which_they_are_kept() -> None:
    script = [say(str(number)) for number in range(40)]

    with ScriptedModel(script) as model, client_of(model) as client, ThreadPoolExecutor(8) as pool:
        asked = [str(number) for number in range(40)]
        said = pool.map(
            lambda text: (
                created(client, messages=[{"role": "user", "content": text}]).content[0].to_dict()["text"]
            ),
            asked,
        )
        pairs = dict(zip(asked, said, strict=True))

    assert [pairs[request.last_text()] for request in model.requests] == asked


def test_waiting_for_requests_that_do_not_come_ends_with_a_count() -> None:
    with ScriptedModel([]) as model, pytest.raises(TimeoutError, match="0 of 1 requests"):
        model.wait_for(1, seconds=0.01)


def test_closing_leaves_no_thread_and_no_listener() -> None:
    before = set(threading.enumerate())
    model = ScriptedModel([say("a")])

    with client_of(model) as client:
        created(client)
        model.close()

        assert set(threading.enumerate()) <= before
        with pytest.raises(anthropic.APIConnectionError):
            created(client)


# Conversations


def test_a_refused_request_consumes_no_reply_and_is_recorded() -> None:
    with playing([say("first")]) as (model, client):
        with pytest.raises(anthropic.BadRequestError, match=r"invalid_request_error.*tool_use"):
            created(client, messages=[*HELLO, CALLED])
        answer = created(client)

    assert answer.content[0].to_dict()["text"] == "first"
    assert [request.turn_number for request in model.requests] == [1, 0]


def test_an_answer_kept_as_json_may_be_sent_back() -> None:
    script = [turn(think("Hm."), say("Reading."), call("f", id="toolu_0001")), say("done")]

    with playing(script) as (_, client):
        kept = json.loads(streamed(client, tools=[READ_FD]).to_json())
        reply = {"role": "assistant", "content": kept["content"]}
        answer = streamed(client, tools=[READ_FD], messages=[*HELLO, reply, RESULT])

    assert answer.stop_reason == "end_turn"


# The documentation


def test_the_example_of_the_package_runs() -> None:
    lines = inspect.cleandoc(fdstore.testing.__doc__ or "").split("\n")
    code = "\n".join(line[4:] for line in lines if line.startswith("    ") or not line)
    names: dict[str, Any] = {}

    exec(code, names)

    names["test_the_agent_looks_the_weather_up"]()


def test_the_examples_of_the_replies_are_true() -> None:
    assert doctest.testmod(fdstore.testing.replies).failed == 0
