"""Scripts: lists, functions and mappings, and mistakes in them."""

from __future__ import annotations

import anthropic
import pytest

from fdstore.testing import Request, Script, ScriptedModel, Turn, call, cut, garbled, say, turn
from fdstore.testing.rules import Feature
from tests.unit.testing.sdk_client import HELLO, READ_FD, client_of, created, playing, streamed


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


LATER = {"name": "search_fd", "input_schema": {"type": "object"}, "defer_loading": True}
TOOLS = [READ_FD, LATER]


def test_a_script_cannot_call_a_deferred_tool_that_nothing_has_loaded() -> None:
    with (
        playing([call("search_fd", fd="fd:1", pattern="x")]) as (model, client),
        pytest.raises(anthropic.BadRequestError, match="calls search_fd, a deferred tool that nothing"),
    ):
        created(client, tools=TOOLS)

    assert model.requests[0].unloaded == {"search_fd"}


def test_a_result_that_loads_tools_has_the_text_that_follows_the_results() -> None:
    with playing([call("read_fd", fd="fd:1", id="a"), call("search_fd", fd="fd:1", pattern="x")]) as (
        model,
        client,
    ):
        asked = created(client, tools=TOOLS)
        loaded = [{"type": "tool_reference", "tool_name": "search_fd"}]
        result = {"type": "tool_result", "tool_use_id": "a", "content": loaded}
        answer = {"role": "user", "content": [result, {"type": "text", "text": "It is long."}]}
        searched = created(client, tools=TOOLS, messages=[*HELLO, asked.to_param(), answer])

    assert searched.content[0].to_dict()["name"] == "search_fd"
    assert model.requests[1].unloaded == set()
    assert model.requests[1].tool_results()[0].text == "It is long."


@pytest.mark.parametrize("feature", ["defer_loading", "tool_reference"])
def test_a_model_can_play_a_server_without_tools_that_are_loaded_later(feature: Feature) -> None:
    loaded = [{"type": "tool_reference", "tool_name": "search_fd"}]
    history = [
        *HELLO,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read_fd", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": loaded}]},
    ]

    with ScriptedModel([say("Done.")], refuses=[feature]) as model, client_of(model) as client:
        with pytest.raises(anthropic.BadRequestError, match=feature):
            created(client, tools=TOOLS, messages=history)
        created(client, tools=[READ_FD])

    assert len(model.requests) == 2
