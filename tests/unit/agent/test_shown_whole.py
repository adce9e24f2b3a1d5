"""How many characters of long texts a conversation shows whole, counted from its records."""

from __future__ import annotations

from fdstore.agent.conversation import Assistant, Cleared, Conversation, Entry, Result, Start
from fdstore.agent.shown_whole import whole_chars
from fdstore.tools.config import FDConfig

CONFIG = FDConfig(max_direct_output_chars=100, max_input_chars=200)
LONG, STORED = "x" * 101, '<fd_result fd="fd:1">\n' + "x" * 200


def conversation(prompt: str, **results: str) -> Conversation:
    """A conversation in which each named tool was called once."""
    calls = [{"type": "tool_use", "id": name, "name": name, "input": {}} for name in results]
    entries: list[Entry] = [
        Start(system="s" * 999, content=prompt),
        Assistant(content=calls, stop_reason="tool_use"),
        *(Result(call=name, content=text) for name, text in results.items()),
    ]
    return Conversation(entries)


def test_only_texts_above_the_thresholds_count() -> None:
    shown = conversation("p" * 200, fetch=LONG, listing="x" * 100)

    assert whole_chars(shown, CONFIG) == 101
    assert whole_chars(conversation("p" * 201, fetch=LONG), CONFIG) == 302


def test_stored_texts_and_results_of_fdstores_own_tools_do_not_count() -> None:
    shown = conversation("Go.", fetch=STORED, read_fd=LONG, spawn=LONG)

    assert whole_chars(shown, CONFIG) == 0


def test_what_was_cleared_still_counts_so_that_later_results_are_shown_alike() -> None:
    shown = conversation("Go.", fetch=LONG)
    [key] = [each.key for each in shown.shown_results()]

    cleared = Conversation([*shown.entries, Cleared(lines={key: "[cleared]"})])

    assert whole_chars(cleared, CONFIG) == whole_chars(shown, CONFIG) == 101


def test_a_conversation_without_a_first_prompt_shows_nothing() -> None:
    assert whole_chars(Conversation([]), CONFIG) == 0
