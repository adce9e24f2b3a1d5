"""The texts that `offload` stores under a name."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore import Offloaded, Toolset
from fdstore.client import Process
from fdstore.errors import InvalidArgument
from tests.elements import only
from tests.on_redis.results.test_offload import SMALL, text


@pytest.fixture
def tools(proc: Process) -> Toolset:
    return Toolset(proc, config=SMALL)


def test_the_first_stored_text_gets_the_name_and_replaces_what_it_meant(
    tools: Toolset, proc: Process
) -> None:
    proc.put("out/log.txt", "before")

    offloaded = tools.offload(
        [text("short"), text("x" * 21), text("y" * 21)], source="bash", name="out/log.txt"
    )

    assert isinstance(offloaded.content, list)
    assert offloaded.descriptor == proc.find("out/log.txt")
    first, second = (only(block["text"])["fd"] for block in offloaded.content[1:])
    assert (first, second) == ("name:out/log.txt", "fd:3")
    assert proc.read("name:out/log.txt", read_all=True).text == "x" * 21
    assert offloaded.descriptor.media_type == "text/plain"
    assert [d.fd for d in proc.list()] == ["fd:3", "name:out/log.txt"]


def test_what_stays_inline_changes_no_name(tools: Toolset, proc: Process) -> None:
    before = proc.put("log", "before")

    assert tools.offload("short", name="log") == Offloaded("short")
    assert proc.find("log") == before


@pytest.mark.parametrize("value", ["short", "x" * 21])
@pytest.mark.parametrize("name", ["", "a\nb", "x" * 1025, "a\udc80", "plan#L1-9", "name:plan", 7])
def test_an_invalid_name_is_refused_and_nothing_stored(
    tools: Toolset, proc: Process, value: str, name: Any
) -> None:
    with pytest.raises(InvalidArgument, match="key: "):
        tools.offload(value, name=name)

    assert proc.list() == []


def test_a_repeated_call_does_not_replace_what_the_name_means_now(tools: Toolset, proc: Process) -> None:
    first = tools.offload("x" * 21, call_id="call_0", name="log")
    later = proc.put("log", "later")

    assert tools.offload("x" * 21, call_id="call_0", name="log") == first
    assert proc.find("log") == later
    with pytest.raises(InvalidArgument, match="was used for another call"):
        tools.offload("x" * 21, call_id="call_0", name="other")
