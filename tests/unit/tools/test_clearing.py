"""Only results that can be shown again are cleared: the oldest, in one batch, and pairs stay whole."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore.elements.facts import NO_FACTS, ResultFacts, join_facts
from fdstore.elements.kinds import FdContent, FdList, FdResult, FdSearch, ProcessResult
from fdstore.errors import InvalidArgument
from fdstore.model.records import TreeLimits
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.tools.clear_messages import clear_messages, tokens_of
from fdstore.tools.clearing import ClearingConfig, ShownResult, find_clearable

SMALL = ClearingConfig(clear_at_tokens=1000, keep_turns=1, clear_to=0.5)
PAGE = '<fd_content fd="fd:1" page="2">\n' + "x" * 1000 + "\n</fd_content>"
STORED = '<fd_result fd="fd:2" pages="9">\n<preview>\n' + "x" * 1000 + "\n</preview>\n</fd_result>"
AGAIN = "[Cleared to save room; the same call shows it again.]"


def turn(id: str, tool: str, content: Any, arguments: Any = None, **more: Any) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": id, "name": tool, "input": arguments or {"fd": "fd:1"}}
    result = {"type": "tool_result", "tool_use_id": id, "content": content, **more}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def conversation(*turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "Go."}, *(message for each in turns for message in each)]


def cleared(
    messages: list[dict[str, Any]], used: int = 2000, config: ClearingConfig = SMALL, held: str = "fd:1 fd:2"
) -> list[Any]:
    """Return the contents of all results after clearing; `held` are the descriptors of the process."""
    handle = ProcessHandle(process_keys("fdstore", "triage"), TreeLimits())
    operation = clear_messages(handle, messages, used, [], config)
    try:
        [[_, _, *fds]] = next(operation)
        operation.send([[b"triage/1" if fd in held.split() else None for fd in fds]])
    except StopIteration as done:
        found = done.value
    assert [message["role"] for message in found] == [message["role"] for message in messages]
    results = [message["content"] for message in found[2::2]]
    return [block["content"] for blocks in results for block in blocks]


def test_the_oldest_are_cleared_until_enough_is_and_the_last_turns_stay() -> None:
    messages = conversation(*(turn(f"c{number}", "read_fd", PAGE) for number in range(10)))

    assert cleared(messages, used=1000) == [PAGE] * 10
    assert cleared(messages, used=1001) == [AGAIN] * 6 + [PAGE] * 4  # to half, with what the calls take
    assert cleared(messages, used=9000) == [AGAIN] * 9 + [PAGE]
    assert cleared(messages, config=ClearingConfig(clear_at_tokens=0)) == [PAGE] * 10


@pytest.mark.parametrize(
    ("tool", "content", "arguments", "line"),
    [
        ("read_fd", PAGE, {"fd": "fd:1", "start": 2}, AGAIN),
        ("read_fd", PAGE, {"fd": 1}, AGAIN),
        ("read_fd", [{"type": "text", "text": PAGE}, {"type": "image", "source": {}}], None, AGAIN),
        ("search_fd", '<fd_search fd="fd:1">' + "x" * 1000, None, AGAIN),
        ("list_fds", '<fd_list count="1">' + "x" * 1000, {"start": 1}, AGAIN),
        ("bash", STORED, None, '[Cleared to save room; it is stored: read_fd(fd="fd:2") shows it again.]'),
        ("bash", [{"type": "text", "text": STORED}], None, "fd:2"),
        ("bash", "x" * 1000, None, None),
        ("bash", PAGE, None, None),
        ("read_fd", "x" * 1000, None, None),
        ("read_fd", PAGE.replace("fd:1", "name:plan"), {"fd": "name:plan"}, None),
        ("read_fd", PAGE.replace("fd:1", "fd:3"), {"fd": "fd:3"}, None),
        ("read_fd", [{"type": "text", "text": "note"}, {"type": "text", "text": PAGE}], None, None),
        ("bash", STORED.replace("fd:2", "fd:3"), None, None),
        ("bash", STORED.replace("fd:2", "name:plan"), None, None),
        ("read_fd", PAGE[:90], None, None),
        ("bash", [{"type": "text", "text": STORED}, {"type": "text", "text": "more"}], None, None),
    ],
)
def test_what_can_be_shown_again_is_cleared_and_nothing_else(
    tool: str, content: Any, arguments: Any, line: str | None
) -> None:
    messages = conversation(turn("a", tool, content, arguments), turn("b", "bash", "done"))

    [found, last] = cleared(messages)

    assert last == "done"
    assert found == content if line is None else line in found


def lines_for(content: Any, facts: ResultFacts, tool: str = "bash", *, is_error: bool = False) -> list[str]:
    """Return the line for a result of an agent with these facts, if it is cleared."""
    handle = ProcessHandle(process_keys("fdstore", "triage"), TreeLimits())
    results = [ShownResult("turn1:a", 1, tool, content, is_error, facts)]
    operation = find_clearable(handle, results, 2, 2000, lambda: 1.0, SMALL)
    try:
        [[_, _, *fds]] = next(operation)
        operation.send([[b"triage/1"] * len(fds)])
    except StopIteration as done:
        return list(done.value.values())
    raise AssertionError


IN_BLOCK_0, IN_BLOCK_1 = FdResult(fd="fd:2"), FdResult(fd="fd:3", block=1)
BOTH = ResultFacts(stored=(IN_BLOCK_0, IN_BLOCK_1))
TEXT = "x" * 1000
CHILD = ResultFacts(processes=(ProcessResult(process="triage.1", state="exited"),))


@pytest.mark.parametrize(
    ("content", "facts", "line"),
    [
        (TEXT, ResultFacts(shown=(FdContent(fd="fd:1"),)), AGAIN),
        (TEXT, ResultFacts(search=FdSearch(fd="fd:1")), AGAIN),
        (TEXT, ResultFacts(listed=FdList(total=4)), AGAIN),
        (TEXT, ResultFacts(stored=(IN_BLOCK_0,)), 'it is stored: read_fd(fd="fd:2") shows it again'),
        ([TEXT, TEXT], BOTH, 'read_fd(fd="fd:2"), read_fd(fd="fd:3")'),
        ([TEXT, TEXT, TEXT], BOTH, None),
        ([TEXT, TEXT], ResultFacts(stored=(IN_BLOCK_1,)), None),
        (TEXT, ResultFacts(stored=(FdResult(fd="name:plan"),)), None),
        (TEXT, ResultFacts(shown=(FdContent(fd="ref:plan"),)), None),
        (TEXT, join_facts(CHILD, ResultFacts(stored=(IN_BLOCK_0,))), None),
        (STORED, NO_FACTS, None),
        (PAGE, NO_FACTS, None),
    ],
)
def test_results_of_an_agent_are_cleared_by_their_facts_and_not_by_their_texts(
    content: Any, facts: ResultFacts, line: str | None
) -> None:
    if isinstance(content, list):
        content = [{"type": "text", "text": text} for text in content]

    found = lines_for(content, facts)

    assert found == [] if line is None else line in found[0]
    assert lines_for(content, facts, is_error=True) == []


def test_blocks_are_cleared_if_all_of_them_are_stored() -> None:
    stored = [{"type": "text", "text": STORED.replace("fd:2", fd)} for fd in ("fd:2", "fd:3")]
    short = {"type": "text", "text": "Exit code 1"}
    messages = conversation(
        turn("c1", "grep", stored),
        turn("c2", "grep", [*stored, short]),
        *(turn(f"d{number}", "read_fd", PAGE) for number in range(3)),
    )

    both, mixed, *_ = cleared(messages, held="fd:1 fd:2 fd:3")
    not_held, *_ = cleared(messages, held="fd:1 fd:2")

    assert 'read_fd(fd="fd:2"), read_fd(fd="fd:3") shows it again' in both
    assert mixed == [*stored, short]
    assert not_held == stored


def test_errors_stay() -> None:
    messages = conversation(turn("a", "read_fd", PAGE, is_error=True), turn("b", "bash", "done"))

    assert cleared(messages) == [PAGE, "done"]


def test_too_little_is_not_worth_a_miss_of_the_cache() -> None:
    messages = conversation(
        turn("a", "read_fd", PAGE), turn("b", "bash", "y" * 50_000), turn("c", "bash", "done")
    )

    assert cleared(messages)[0] == PAGE


def test_the_messages_given_are_not_changed() -> None:
    messages = conversation(turn("a", "read_fd", PAGE), turn("b", "bash", "done"))

    cleared(messages)

    assert messages[2]["content"][0]["content"] == PAGE


@pytest.mark.parametrize("usage", [None, {}, "many", {"output_tokens": 1}, -1, True])
def test_a_usage_without_counts_is_refused(usage: object) -> None:
    with pytest.raises(InvalidArgument, match="usage of an answer"):
        tokens_of(usage)


@pytest.mark.parametrize(
    ("field", "value"),
    [("clear_at_tokens", -1), ("clear_at_tokens", True), ("keep_turns", 0), ("clear_to", 1), ("clear_to", 0)],
)
def test_settings_out_of_range_are_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidArgument, match=field):
        ClearingConfig(**{field: value})
