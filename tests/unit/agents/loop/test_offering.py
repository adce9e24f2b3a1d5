"""The tools that an agent is offered, and the counts of those that are held back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fdstore.agents.loop.calibration import Calibration
from fdstore.agents.loop.conversation import (
    Assistant,
    Cleared,
    Conversation,
    Entry,
    Offered,
    Result,
    Start,
    Undeferred,
    decode_entry,
    encode_entry,
)
from fdstore.agents.loop.offering import HELD_BACK, read_tools, sent_tools
from fdstore.testing.rules import check_creation
from fdstore.tools.catalogue import FD_TOOLS

YOURS = {"name": "fetch", "description": "Fetch."}
TOOLS = [{"name": "read_fd", "description": "Read. " * 500}, YOURS]
HELD = Start(system="You read.", content="word " * 500, held_back=True)
DEFERRED = Start(system="You read.", content="word " * 500, held_back="deferred")
ANSWER = Assistant(content=[], stop_reason="pause_turn", input_tokens=700)


REFERENCES = [{"type": "tool_reference", "tool_name": "read_fd"}]
OFFERED = Offered(text="Read.", loaded_by="turn1:a", tools=("read_fd",))
CALLS = Assistant(
    content=[{"type": "tool_use", "id": id_, "name": "fetch", "input": {}} for id_ in ("a", "b")],
    stop_reason="tool_use",
)
RESULTS = [Result(call="a", content="long"), Result(call="b", content="short")]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def tool_result(call: str, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content}


def request(conversation: Conversation) -> dict[str, Any]:
    tools = [{**each, "input_schema": {"type": "object"}} for each in sent_tools(TOOLS, conversation)]
    return {"model": "m", "max_tokens": 1, "messages": conversation.messages(), "tools": tools}


def test_only_tools_without_a_use_before_the_first_descriptor_are_held_back() -> None:
    assert {"read_fd", "search_fd", "list_fds", "close_fd"} <= HELD_BACK <= FD_TOOLS
    assert HELD_BACK.isdisjoint({"write_fd", "put_fd", "fd_to_file"})


def test_tools_are_held_back_until_the_record_that_offers_them() -> None:
    entries: list[Entry] = [HELD, ANSWER]

    assert sent_tools(TOOLS, Conversation(entries)) == [YOURS]
    assert sent_tools(TOOLS, Conversation([*entries, Offered(text="Read.")])) == TOOLS


def test_a_conversation_of_an_earlier_version_has_all_tools() -> None:
    start = decode_entry(b'{"kind":"start","system":"","content":"Go."}')

    assert sent_tools(TOOLS, Conversation([start])) == TOOLS


def test_the_record_that_offers_tools_is_stored_as_its_own_kind() -> None:
    record = encode_entry(Offered(text="Read."))

    assert record == '{"kind":"offered","text":"Read."}'
    assert decode_entry(record.encode()) == Offered(text="Read.")


def test_deferred_tools_are_sent_from_the_first_request_on_and_read_once_they_are_loaded() -> None:
    before, after = Conversation([DEFERRED, CALLS]), Conversation([DEFERRED, CALLS, *RESULTS, OFFERED])

    assert (
        sent_tools(TOOLS, before) == sent_tools(TOOLS, after) == [{**TOOLS[0], "defer_loading": True}, YOURS]
    )
    assert (read_tools(TOOLS, before), read_tools(TOOLS, after)) == ([YOURS], TOOLS)


def test_deferred_tools_that_no_result_can_load_are_offered_as_others() -> None:
    conversation = Conversation([DEFERRED, CALLS, *RESULTS, Offered(text="Read.")])

    assert sent_tools(TOOLS, conversation) == TOOLS
    assert conversation.messages()[-1]["content"][-1] == text("Read.")


@pytest.mark.parametrize("is_offered", [False, True])
def test_a_server_that_refuses_deferred_tools_is_sent_none(is_offered: bool) -> None:
    offered = [OFFERED] if is_offered else []
    conversation = Conversation([DEFERRED, CALLS, *RESULTS, *offered, Undeferred(reason="no")])

    assert sent_tools(TOOLS, conversation) == (TOOLS if is_offered else [YOURS])
    sent = conversation.messages()[-1]["content"]
    notes = [text("Read.")] if is_offered else []
    assert sent == [tool_result("a", "long"), tool_result("b", "short"), *notes]
    check_creation(request(conversation))


def test_tools_that_are_offered_before_the_first_answer_are_explained_in_the_system_prompt() -> None:
    conversation = Conversation([DEFERRED, Undeferred(reason="no"), Offered(text="Read.")])

    assert conversation.system == "You read.\n\nRead."
    assert sent_tools(TOOLS, conversation) == TOOLS


def test_the_text_of_a_result_that_loads_tools_follows_the_results() -> None:
    """The API takes nothing beside the references."""
    conversation = Conversation([DEFERRED, CALLS, *RESULTS, OFFERED])

    assert conversation.messages()[-1]["content"] == [
        tool_result("a", REFERENCES),
        tool_result("b", "short"),
        text("The result of call 1, of fetch:"),
        text("long"),
        text("Read."),
    ]
    check_creation(request(conversation))


def test_the_text_of_an_only_result_needs_no_name() -> None:
    call = msgspec.structs.replace(CALLS, content=CALLS.content[:1])
    conversation = Conversation([DEFERRED, call, RESULTS[0], OFFERED])

    assert conversation.messages()[-1]["content"] == [
        tool_result("a", REFERENCES),
        text("long"),
        text("Read."),
    ]


def test_the_blocks_of_a_result_that_loads_tools_are_sent_as_they_are() -> None:
    blocks = [text("long"), {"type": "image", "source": {"type": "url", "url": "x"}}, text(" ")]
    call = msgspec.structs.replace(CALLS, content=CALLS.content[:1])
    conversation = Conversation([DEFERRED, call, Result(call="a", content=blocks), OFFERED])

    assert conversation.messages()[-1]["content"] == [
        tool_result("a", REFERENCES),
        text("The result of call 1, of fetch:"),
        *blocks[:2],
        text("Read."),
    ]
    check_creation(request(conversation))


def test_a_result_that_loads_tools_still_does_so_when_it_is_cleared() -> None:
    conversation = Conversation([DEFERRED, CALLS, *RESULTS, OFFERED, Cleared(lines={"turn1:a": "[cleared]"})])

    first, _, _, line, explanation = conversation.messages()[-1]["content"]
    assert first == tool_result("a", REFERENCES)
    assert (line, explanation) == (text("[cleared]"), text("Read."))


def test_a_copy_of_a_conversation_with_deferred_tools_begins_with_the_same_messages() -> None:
    entries: list[Entry] = [DEFERRED, CALLS, *RESULTS, OFFERED, ANSWER, CALLS, *RESULTS]

    copy = Conversation(entries, inherited=5)

    whole = Conversation(entries)
    assert copy.messages() == whole.messages()
    assert copy.messages()[:3] == Conversation(entries[:5]).messages()
    assert sent_tools(TOOLS, copy) == sent_tools(TOOLS, whole)


def test_the_record_of_tools_that_a_result_loads_names_both() -> None:
    record = encode_entry(OFFERED)

    assert record == ('{"kind":"offered","text":"Read.","loaded_by":"turn1:a","tools":["read_fd"]}')
    assert decode_entry(record.encode()) == OFFERED


def test_estimates_do_not_count_deferred_tools_that_are_not_loaded() -> None:
    entries: list[Entry] = [DEFERRED, CALLS, *RESULTS]
    deferred = Calibration(Conversation([*entries, ANSWER]), TOOLS)
    without = Calibration(Conversation([*entries, ANSWER]), [YOURS])
    loaded = Calibration(Conversation([*entries, OFFERED, ANSWER]), TOOLS)

    assert deferred() == without() > loaded()


def test_estimates_are_calibrated_by_what_was_offered() -> None:
    held = Calibration(Conversation([HELD, ANSWER]), TOOLS)
    without = Calibration(Conversation([HELD, ANSWER]), [YOURS])

    assert held() == without() != 1.0
