"""Agents continue after refused quotas, invalid JSON, paused turns and repeated call ids."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore.agents.loop.models.tries import READABLE_TRIES
from fdstore.agents.loop.program_loader import Program
from fdstore.client import Store
from fdstore.errors import StreamBroken
from fdstore.model.records import TreeLimits
from fdstore.testing import Request, call, garbled, say, turn
from tests.dialects import every_dialect
from tests.on_redis.running_agents import READER, SMALL, AgentsOf, Play, ran, tool

pytestmark = every_dialect

LONG = "word " * 50


# quotas


def test_a_model_sees_which_passage_the_quota_refused_and_continues(play: Play, store: Store) -> None:
    both = turn(
        say('<ref id="long">' + LONG + '</ref> and <ref id="plan">Short.</ref>'), call("echo", words="a")
    )

    agents = play(
        [both, say("Done.")],
        tools=("read_fd",),
        python=(tool("echo"),),
        tree_limits=TreeLimits(tree_bytes=100),
    )

    assert (agents.record().state, agents.answer()) == ("exited", "Done.")
    result, note, *_ = agents.model.requests[1].messages[-1]["content"]
    assert (result["type"], result["content"]) == ("tool_result", "you said a")
    assert note["text"].startswith("ref:long was not stored.\n<fd_error")
    assert 'type="quota_exceeded" fd="ref:long"' in note["text"]
    assert [d.fd for d in store.process("solo").list()] == ["ref:plan"]


def test_a_last_answer_with_a_passage_refused_by_the_quota_does_not_fail_the_agent(play: Play) -> None:
    agents = play(
        [say(f'<ref id="long">{LONG}</ref>')], tools=("read_fd",), tree_limits=TreeLimits(tree_bytes=10)
    )

    assert (agents.record().state, agents.record().exit_code) == ("exited", 0)
    assert agents.answer() == f'<ref id="long">{LONG}</ref>'


def test_the_model_sees_the_refused_passage_after_a_takeover_too(agents_of: AgentsOf) -> None:
    script = [turn(say(f'<ref id="long">{LONG}</ref>'), call("spawn", program_name="reader", query="Go."))]
    agents = agents_of({"SOLO": [*script, say("Done.")], "READER": [say("Read.")]})
    agents.launch(tools=("spawn", "read_fd"), others=[READER], tree_limits=TreeLimits(tree_bytes=10))
    agents.run_all("solo")

    last = agents.model.requests[-1].messages[-1]["content"]
    assert [block["type"] for block in last] == ["tool_result", "text"]
    assert agents.record().attempt == 2


@pytest.mark.parametrize("background", [False, True])
def test_a_long_answer_refused_by_the_quota_is_truncated_with_a_note(
    agents_of: AgentsOf, store: Store, background: bool
) -> None:
    spawn = call("spawn", program_name="reader", query="Read it.", background=background)
    first = [spawn, call("wait", target="solo.1")] if background else [spawn]
    script = {"SOLO": [*first, say("Done.")], "READER": [say(LONG)]}

    agents = agents_of(script)
    agents.launch(
        tools=("spawn", "wait", "read_fd"),
        others=[READER],
        file_descriptor=SMALL,
        tree_limits=TreeLimits(tree_bytes=100),
    )
    agents.run_all("solo")

    child = agents.record("solo.1")
    assert (child.state, child.exit_code) == ("exited", 0)
    shown = agents.results()[-1].content
    assert f"{LONG[:100]}\n[cut here, as all 250 characters could not be stored: the limit" in shown
    assert agents.answer() == "Done."
    if background:
        with pytest.raises(StreamBroken, match="quota_exceeded"):
            "".join(store.process("solo").follow("fd:1"))


# calls that are not JSON


def test_a_call_with_invalid_json_gets_an_error_result_and_is_not_run(play: Play) -> None:
    both = turn(garbled("echo", '{"words": "a'), call("echo", words="b"))

    agents = play([both] * READABLE_TRIES + [call("echo", words="c"), say("Done.")], python=(tool("echo"),))

    assert ran == ["b", "c"]
    wrong, right, _ = agents.results()
    assert (wrong.is_error, right.is_error) == (True, False)
    assert 'type="invalid_argument"' in wrong.content
    assert "its arguments are not a JSON object" in wrong.content
    assert agents.answer() == "Done."


def test_a_later_attempt_does_not_run_a_call_with_invalid_json_either(agents_of: AgentsOf) -> None:
    both = turn(call("spawn", program_name="reader", query="Go."), garbled("echo", "{"))
    script = {"SOLO": [both] * READABLE_TRIES + [say("Done.")], "READER": [say("Read.")]}

    agents = agents_of(script)
    agents.launch(tools=("spawn",), others=[READER], python=(tool("echo"),))
    agents.run_all("solo")

    assert (ran, agents.answer()) == ([], "Done.")


# answers in parts


def test_the_answer_of_an_agent_is_complete_after_a_paused_turn(play: Play, store: Store) -> None:
    agents = play(
        [
            turn(say('One. <ref id="a">A</ref> <ref id="b">B'), stop_reason="pause_turn"),
            turn(say(" and more</ref> Two."), stop_reason="pause_turn"),
            say(" Three."),
        ],
        tools=("read_fd",),
    )

    assert agents.answer() == 'One. <ref id="a">A</ref> <ref id="b">B and more</ref> Two. Three.'
    solo = store.process("solo")
    assert [(d.fd, solo.read(d.fd).text) for d in solo.list()] == [("ref:a", "A"), ("ref:b", "B and more")]


def test_the_streamed_text_of_a_paused_answer_equals_the_answer(agents_of: AgentsOf) -> None:
    speaker = Program(name="speaker", model="any", system="You are SPEAKER.")
    spawn = call("spawn", program_name="speaker", query="Speak.", background=True)
    script = {
        "SOLO": [spawn, call("wait", target="solo.1"), say("Done.")],
        "SPEAKER": [turn(say("One."), stop_reason="pause_turn"), say(" Two.")],
    }

    agents = agents_of(script)
    root = agents.launch(tools=("spawn", "wait", "read_fd"), others=[speaker])
    agents.run_all("solo")

    assert "".join(root.follow("fd:1")) == "One. Two."
    assert "\nOne. Two.\n" in agents.results()[-1].content


# ids of calls


def test_a_provider_that_reuses_call_ids_in_each_turn_gets_each_result(play: Play) -> None:
    agents = play(
        [call("echo", words="a", id="call_0"), call("lines", count=100, id="call_0"), say("Done.")],
        tools=("read_fd",),
        python=(tool("echo"), tool("lines")),
        file_descriptor=SMALL,
    )

    assert (ran, agents.answer()) == (["a", "lines 100"], "Done.")
    shown = [request.messages[-1]["content"][0]["content"] for request in agents.model.requests[1:]]
    assert shown[0] == "you said a"
    assert shown[1].startswith('<fd_result fd="fd:1"')


def test_a_fork_gets_its_task_although_call_ids_repeat(agents_of: AgentsOf) -> None:
    def script(request: Request) -> Any:
        last = request.tool_results()[-1].text if request.tool_results() else ""
        if "You are copy" in last:
            return say(last.rpartition("\n")[2])
        if request.turn_number < 2:
            return [
                call("echo", words="a", id="call_0"),
                call("fork", prompts=["One.", "Two."], id="call_0"),
            ][request.turn_number]
        return say(last)

    agents = agents_of(script)
    agents.launch(tools=("fork",), python=(tool("echo"),))
    agents.run_all("solo")

    assert [agents.answer(f"solo.{number}") for number in (1, 2)] == ["One.", "Two."]
    assert "\nOne.\n" in agents.answer()
