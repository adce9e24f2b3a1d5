"""What elements cost a model beside the text that they show, in tokens by the built-in estimate."""

from __future__ import annotations

import json

from fdstore import Process, Toolset
from fdstore.text.tokens import estimate_tokens
from tests.elements import Element, only

LINES = "".join(f"{number:>6} " + "x" * 67 + "\n" for number in range(1, 200_001))
FD_RESULT, LINE, PAGE = 90, 35, 48
MOST_STANDING = 2420


def frame_tokens(element: str) -> int:
    """Return the tokens of an element without the texts in it."""
    found: Element = only(element)
    texts = [found.body or "", *(each.body or "" for each in found.children if each.name != "message")]
    for text in texts:
        element = element.replace(text, "") if text else element
    return estimate_tokens(element)


def test_a_stored_result_costs_little_beside_its_text(proc: Process) -> None:
    tools = Toolset(proc, enabled=["read_fd", "search_fd"])
    tools.wrap("x" * 9000)

    plain = tools.wrap(LINES[: 75 * 2000], source="build.log")
    large = tools.wrap(LINES, source="run_tests")
    log = tools.wrap("".join(f"12:00:00 INFO {number}\n" for number in range(3000)), source="worker")
    error_end = tools.wrap("[" + "1,\n" * 9000 + "1]", source="query")

    assert [max(frame_tokens(each), FD_RESULT) for each in (plain, large, log, error_end)] == [FD_RESULT] * 4


def test_a_page_and_a_line_cost_little_beside_their_text(proc: Process) -> None:
    tools = Toolset(proc, enabled=["read_fd"])
    proc.create(LINES[: 75 * 2000])

    page = tools.call("read_fd", {"fd": "fd:1", "start": 20}).text
    line = tools.call("read_fd", {"fd": "fd:1#L1234"}).text

    assert frame_tokens(page) <= PAGE
    assert frame_tokens(line) <= LINE


def test_what_stands_in_each_request_is_short(proc: Process) -> None:
    """With some characters more, public tasks with a long result cost over 0.65 of everything inline."""
    tools = Toolset(proc, enabled=["read_fd", "search_fd"])

    assert len(json.dumps(tools.definitions)) + len(tools.instructions) <= MOST_STANDING
