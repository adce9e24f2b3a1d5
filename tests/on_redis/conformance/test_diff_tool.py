"""`diff_fd`: what a model sees of the difference of two texts."""

from __future__ import annotations

import pytest

from fdstore import FDConfig, Toolset
from fdstore.client import Process
from fdstore.tools.built_in import diff_fd
from tests.elements import only

LOG = "".join(f"line {number} of the build\n" for number in range(1, 2001))


@pytest.fixture
def tools(proc: Process) -> Toolset:
    """The tools of a process with two texts that differ in two lines, and bytes."""
    proc.create(LOG)
    proc.put("plan.md", LOG.replace("line 7 ", "Line 7 ").replace("line 90 ", "Line 90 "))
    proc.create(b"PK\x03\x04")
    return Toolset(proc, enabled=["diff_fd", "read_fd"])


def test_a_short_diff_is_shown(tools: Toolset) -> None:
    shown = tools.call("diff_fd", {"a": "fd:1#L1-10", "b": "name:plan.md#L1-10", "context": "0"}, "c1")

    assert not shown.is_error
    assert shown.content == (
        '<fd_diff a="fd:1#L1-10" b="name:plan.md#L1-10" removed="1" added="1">\n'
        "--- fd:1#L1-10\n+++ name:plan.md#L1-10\n@@ -7 +7 @@\n-line 7 of the build\n+Line 7 of the build\n"
        "</fd_diff>"
    )


def test_equal_texts_say_so(tools: Toolset) -> None:
    shown = only(tools.call("diff_fd", {"a": "fd:1#L1-6", "b": "name:plan.md#L1-6"}).content)

    assert (shown["removed"], shown["added"]) == ("0", "0")
    assert shown.body == "fd:1#L1-6 and name:plan.md#L1-6 are equal."


def test_a_long_diff_is_stored_once_and_previewed(proc: Process) -> None:
    proc.create(LOG)
    proc.create(LOG.replace("of the", "of a"))
    tools = Toolset(proc, enabled=["diff_fd", "read_fd"], config=FDConfig(max_direct_output_chars=1000))

    shown = tools.call("diff_fd", {"a": "fd:1", "b": "fd:2"}, "c1")
    again = tools.call("diff_fd", {"a": "fd:1", "b": "fd:2"}, "c1")

    assert only(shown.content).name == "fd_result"
    assert only(shown.content)["fd"] == "fd:3"
    assert '<preview kind="diff"' in shown.content
    assert again == shown
    assert proc.read("fd:3", read_all=True).text == proc.diff("fd:1", "fd:2")
    assert len(proc.list()) == 3


def test_text_that_looks_like_an_element_of_ours_is_escaped(proc: Process) -> None:
    proc.create("a\n")
    proc.create('<fd_result fd="fd:9">\n')
    tools = Toolset(proc, enabled=["diff_fd"])

    shown = only(tools.call("diff_fd", {"a": 1, "b": 2}).content)

    assert (shown.name, shown["escaped"]) == ("fd_diff", "true")
    assert shown.body.endswith('-a\n+&lt;fd_result fd="fd:9">')


def test_mistakes_are_results(tools: Toolset) -> None:
    kinds = [
        only(tools.call("diff_fd", {"a": 1, "b": b}).content)["type"]
        for b in ("fd:9", "fd:1#L9000", "fd:3", "fd:3#Q1")
    ]

    assert kinds == ["not_found", "invalid_range", "not_text", "invalid_argument"]


def test_a_diff_of_more_than_can_be_held_says_to_compare_parts(
    tools: Toolset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diff_fd, "MAX_DIFF_BYTES", 100)

    shown = only(tools.call("diff_fd", {"a": 1, "b": "name:plan.md"}).content)

    assert shown["type"] == "too_large"
    assert "compare parts, such as fd:3#L1-1000" in shown.message
