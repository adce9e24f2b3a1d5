"""Other clients and endpoints of a scripted model, and many clients at once."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import pytest

from fdstore.testing import Request, ScriptedModel, Turn, call, say, turn
from tests.unit.testing.sdk_client import HELLO, client_of, created, playing
from tests.waiting import PATIENCE_S


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
        connection = http.client.HTTPConnection(model.base_url.removeprefix("http://"), timeout=PATIENCE_S)
        headers = {"x-api-key": model.api_key, "anthropic-version": "2023-06-01"}
        for _ in range(2):
            connection.request("POST", "/v1/messages", body, headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
            assert (response.status, answer["type"]) == (400, "error")
            assert problem in answer["error"]["message"]
        connection.close()


@pytest.mark.thorough("its number takes long")
def test_several_hundred_agents_can_ask_concurrently() -> None:
    together = threading.Barrier(300)

    def script(request: Request) -> Turn:
        together.wait(PATIENCE_S)
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
