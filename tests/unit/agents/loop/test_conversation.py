"""The conversation: how its records determine the next step and the request to the Messages API."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.agents.loop.conversation import (
    Assistant,
    Conversation,
    Entry,
    Note,
    Offered,
    Result,
    Start,
    Undeferred,
    decode_entry,
    encode_entry,
)
from fdstore.testing.rules import check_creation
from fdstore.tools.process_task import ForkTask, SpawnTask

BRIEF = SpawnTask(query="Count the errors.")
START = Start(system="You count.", content="Count the errors.")


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def tool_use(call: str, name: str = "read_fd") -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": {"fd": "fd:1"}}


def assistant_with_calls(*calls: str) -> Assistant:
    return Assistant(content=[tool_use(call) for call in calls], stop_reason="tool_use")


def assistant_text(words: str, stop_reason: str = "end_turn") -> Assistant:
    return Assistant(content=[text(words)], stop_reason=stop_reason)


def result(call: str, is_error: bool = False) -> Result:
    return Result(call=call, content=f"result of {call}", is_error=is_error)


# the journal

some_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
utf8 = st.text(st.characters(codec="utf-8"))
entries = st.one_of(
    st.builds(SpawnTask, query=utf8, preload=st.lists(utf8), answer_limit=st.none() | st.integers(1, 9)),
    st.builds(
        ForkTask, of=utf8, records=st.just(3), call=utf8, prompt=utf8, copy=st.just(1), copies=st.just(2)
    ),
    st.builds(Start, system=utf8, content=utf8),
    st.builds(
        Assistant,
        content=st.lists(st.dictionaries(utf8, some_json)),
        stop_reason=st.none() | utf8,
        input_tokens=st.integers(0, 2**40),
        output_tokens=st.integers(0, 2**40),
        malformed=st.dictionaries(utf8, utf8),
    ),
    st.builds(Result, call=utf8, content=utf8, is_error=st.booleans()),
    st.builds(Note, text=utf8),
    st.builds(Offered, text=utf8, loaded_by=utf8, tools=st.lists(utf8, max_size=2).map(tuple)),
    st.builds(Undeferred, reason=utf8),
)


@given(entries)
def test_a_record_is_one_line_and_survives_a_round_trip(entry: Entry) -> None:
    record = encode_entry(entry)

    assert "\n" not in record
    assert decode_entry(record.encode()) == entry


# the next step


def test_an_empty_journal_has_no_start() -> None:
    conversation = Conversation([BRIEF])

    assert conversation.start is None
    assert conversation.messages() == []


def test_open_calls_are_the_calls_of_the_last_answer_that_have_no_result_in_order() -> None:
    conversation = Conversation([BRIEF, START, assistant_with_calls("a", "b", "c"), result("b")])

    assert [call.id for call in conversation.open_calls()] == ["a", "c"]


def test_calls_of_an_answer_that_was_cut_off_are_not_run() -> None:
    cut_off = Assistant(content=[tool_use("a")], stop_reason="max_tokens")

    assert Conversation([BRIEF, START, cut_off]).open_calls() == []


@pytest.mark.parametrize(
    ("stop_reason", "last"),
    [
        ("end_turn", True),
        ("stop_sequence", True),
        ("max_tokens", True),
        ("refusal", True),
        ("model_context_window_exceeded", True),
        ("one_nobody_knows_yet", True),
        (None, True),
        ("pause_turn", False),
    ],
)
def test_an_answer_with_another_stop_reason_ends_the_conversation(
    stop_reason: str | None, last: bool
) -> None:
    assert Assistant(content=[text("x")], stop_reason=stop_reason).is_last is last


def test_an_answer_that_stops_for_tools_without_a_call_ends_the_conversation() -> None:
    assert not assistant_with_calls("a").is_last
    assert assistant_text("Let me look.", "tool_use").is_last


def test_input_and_output_tokens_of_all_answers_are_summed() -> None:
    answers = [
        Assistant(content=[], stop_reason="tool_use", input_tokens=number, output_tokens=1)
        for number in (10, 20)
    ]

    assert Conversation([BRIEF, START, *answers]).tokens == 32


# requests to the API


def test_results_follow_their_calls_in_the_order_of_the_calls() -> None:
    conversation = Conversation(
        [
            BRIEF,
            START,
            assistant_with_calls("a", "b"),
            result("b", is_error=True),
            result("a"),
            assistant_with_calls("c"),
            result("c"),
        ]
    )

    first, calls, results, call, last = conversation.messages()

    assert first == {"role": "user", "content": "Count the errors."}
    assert calls == {"role": "assistant", "content": [tool_use("a"), tool_use("b")]}
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "result of a"},
        {"type": "tool_result", "tool_use_id": "b", "content": "result of b", "is_error": True},
    ]
    assert (call["role"], last["content"][0]["tool_use_id"]) == ("assistant", "c")


def test_a_paused_turn_is_sent_back_unchanged_and_the_next_one_continues_it() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
    paused = Assistant(content=[text("Searching."), search], stop_reason="pause_turn")

    begun = Conversation([BRIEF, START, paused])
    assert begun.messages()[-1] == {"role": "assistant", "content": [text("Searching."), search]}

    begun.add(assistant_text("Found."))
    assert [message["role"] for message in begun.messages()] == ["user", "assistant"]
    assert begun.messages()[-1]["content"] == [text("Searching."), search, text("Found.")]


def test_the_text_of_an_answer_joins_all_its_paused_parts() -> None:
    paused = [assistant_text("One. ", "pause_turn"), assistant_text("Two. ", "pause_turn")]
    conversation = Conversation([BRIEF, START, assistant_text("Before."), *paused, assistant_text("Three.")])

    assert conversation.text == "One. Two. Three."


def test_a_call_id_reused_in_a_later_answer_is_a_different_call() -> None:
    conversation = Conversation(
        [BRIEF, START, assistant_with_calls("a"), result("a"), assistant_with_calls("a")]
    )

    [call] = conversation.open_calls()
    assert (call.id, call.key) == ("a", "turn2:a")

    conversation.add(Result(call="a", content="another result"))
    assert conversation.open_calls() == []
    shown = [message["content"] for message in conversation.messages() if message["role"] == "user"]
    assert [part[0]["content"] for part in shown[1:]] == ["result of a", "another result"]
    assert [part[0]["tool_use_id"] for part in shown[1:]] == ["a", "a_2"]


def test_calls_of_one_answer_with_the_same_id_are_distinguished() -> None:
    conversation = Conversation([BRIEF, START, assistant_with_calls("a", "a")])
    assert [call.key for call in conversation.open_calls()] == ["turn1:a", "turn1:a#2"]

    conversation.add(Result(call="a", content="first"))
    assert [call.key for call in conversation.open_calls()] == ["turn1:a#2"]

    conversation.add(Result(call="a", content="second"))
    assert [block["content"] for block in conversation.messages()[-1]["content"]] == ["first", "second"]


def test_a_note_follows_the_results_of_its_turn_or_the_next_ones() -> None:
    told = Note(text="ref:plan was not stored.")
    paused = assistant_text("Searching.", "pause_turn")
    conversation = Conversation(
        [
            BRIEF,
            START,
            assistant_with_calls("a"),
            told,
            result("a"),
            paused,
            told,
            assistant_with_calls("b"),
            result("b"),
        ]
    )

    *_, first, _, second = conversation.messages()

    for message in (first, second):
        assert [block["type"] for block in message["content"]] == ["tool_result", "text"]
        assert message["content"][1]["text"] == told.text


def test_blank_texts_are_left_out_because_the_api_refuses_them() -> None:
    answer = Assistant(content=[text(""), text(" \n"), tool_use("a")], stop_reason="tool_use")

    messages = Conversation([BRIEF, START, answer, result("a")]).messages()

    assert messages[1]["content"] == [tool_use("a")]


def test_blank_texts_of_results_in_an_older_journal_are_left_out_too() -> None:
    answer = Assistant(content=[tool_use("a"), tool_use("b"), tool_use("c")], stop_reason="tool_use")
    start = Start(system="You count.", content=[text("")])
    results = [
        Result(call="a", content=[text(""), text("12 errors")]),
        Result(call="b", content=[text(" ")], is_error=True),
        Result(call="c", content=""),
    ]

    first, _, last = Conversation([BRIEF, start, answer, *results]).messages()

    assert first["content"] == "(no text)"
    assert [block["content"] for block in last["content"]] == [[text("12 errors")], "(no output)", ""]


def test_an_empty_answer_gives_no_message() -> None:
    empty = Assistant(content=[], stop_reason="pause_turn")

    assert Conversation([BRIEF, START, empty]).messages() == [{"role": "user", "content": START.content}]


@st.composite
def conversations(draw: st.DrawFn) -> list[Entry]:
    """Any conversation up to the next request to the model."""
    found: list[Entry] = [BRIEF, START]
    ids = st.integers(0, 9)  # some providers restart the numbering of calls in each answer
    for _ in range(draw(st.integers(0, 5))):
        words = [text(draw(st.sampled_from(["", " ", "So."])))] * draw(st.integers(0, 2))
        calls = [f"toolu_{draw(ids)}" for _ in range(draw(st.integers(0, 3)))]
        reason = "tool_use" if calls else "pause_turn"
        found.append(Assistant(content=[*words, *map(tool_use, calls)], stop_reason=reason))
        found += [result(call, draw(st.booleans())) for call in draw(st.permutations(calls))]
    return found


@given(conversations())
def test_any_conversation_gives_messages_that_the_api_accepts(found: list[Entry]) -> None:
    check_creation({"model": "any", "max_tokens": 1, "messages": Conversation(found).messages()})


@given(conversations(), st.data())
def test_a_conversation_rebuilt_from_its_journal_equals_the_original(
    found: list[Entry], data: st.DataObject
) -> None:
    lived = Conversation(found[: data.draw(st.integers(0, len(found)))])
    for entry in found[len(lived.entries) :]:
        lived.add(entry)

    resumed = Conversation([decode_entry(encode_entry(entry).encode()) for entry in found])

    assert resumed.messages() == lived.messages()
    assert resumed.open_calls() == lived.open_calls()


@pytest.mark.parametrize("number", ["-1", "1e308", "9007199254740993", "9" * 400, '"nan"', "null"])
def test_a_record_with_an_impossible_number_of_tokens_is_not_one(number: str) -> None:
    record = f'{{"kind":"assistant","content":[],"stop_reason":null,"input_tokens":{number}}}'

    with pytest.raises(ValueError, match="input_tokens"):
        decode_entry(record.encode())
