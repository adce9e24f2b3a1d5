"""The tools that an agent is offered, and the counts of those that are held back."""

from __future__ import annotations

from fdstore.agents.loop.calibration import Calibration
from fdstore.agents.loop.conversation import (
    Assistant,
    Conversation,
    Entry,
    Offered,
    Start,
    decode_entry,
    encode_entry,
)
from fdstore.agents.loop.offering import HELD_BACK, offered_tools
from fdstore.tools.catalogue import FD_TOOLS

YOURS = {"name": "fetch", "description": "Fetch."}
TOOLS = [{"name": "read_fd", "description": "Read. " * 500}, YOURS]
HELD = Start(system="You read.", content="word " * 500, held_back=True)
ANSWER = Assistant(content=[], stop_reason="pause_turn", input_tokens=700)


def test_only_tools_without_a_use_before_the_first_descriptor_are_held_back() -> None:
    assert {"read_fd", "search_fd", "list_fds", "close_fd"} <= HELD_BACK <= FD_TOOLS
    assert HELD_BACK.isdisjoint({"write_fd", "put_fd", "fd_to_file"})


def test_tools_are_held_back_until_the_record_that_offers_them() -> None:
    entries: list[Entry] = [HELD, ANSWER]

    assert offered_tools(TOOLS, Conversation(entries)) == [YOURS]
    assert offered_tools(TOOLS, Conversation([*entries, Offered(text="Read.")])) == TOOLS


def test_a_conversation_of_an_earlier_version_has_all_tools() -> None:
    start = decode_entry(b'{"kind":"start","system":"","content":"Go."}')

    assert offered_tools(TOOLS, Conversation([start])) == TOOLS


def test_the_record_that_offers_tools_is_stored_as_its_own_kind() -> None:
    record = encode_entry(Offered(text="Read."))

    assert record == '{"kind":"offered","text":"Read."}'
    assert decode_entry(record.encode()) == Offered(text="Read.")


def test_estimates_are_calibrated_by_what_was_offered() -> None:
    held = Calibration(Conversation([HELD, ANSWER]), TOOLS)
    without = Calibration(Conversation([HELD, ANSWER]), [YOURS])

    assert held() == without() != 1.0
