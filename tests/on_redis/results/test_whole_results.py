"""A long text is always stored; one of at most `whole_chars` characters is shown whole, with its id."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fdstore import FDConfig, ToolPolicy, Toolset
from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument
from fdstore.testing import Request, call, say, turn
from tests.elements import Element, only
from tests.on_redis.running_agents import running, tool

TEXT = "".join(f"line {number}\n" for number in range(1, 951))  # 8442 characters, 3 pages
WHOLE = FDConfig(whole_chars=len(TEXT))


def build() -> str:
    """Build."""
    return TEXT


DOORS: dict[str, Callable[[Toolset], Any]] = {
    "wrap": lambda tools: tools.wrap(TEXT, source="build"),
    "wrap_input": lambda tools: tools.wrap_input(TEXT),
    "offload": lambda tools: tools.offload(TEXT, source="build").content,
    "a function": lambda tools: tools.call("build", {}).text,
    "a repeated function": lambda tools: [tools.call("build", {}, call_id="a").text for _ in range(2)][1],
}


@pytest.fixture(params=DOORS)
def show(request: pytest.FixtureRequest, proc: Process) -> Callable[[FDConfig], Element]:
    """Return what one door shows of the text under a configuration."""
    door = DOORS[request.param]
    return lambda config: only(door(Toolset(proc, config=config, python=[build])))


def test_a_size_that_is_set_to_its_default_is_exact(
    show: Callable[[FDConfig], Element], proc: Process
) -> None:
    config = FDConfig(max_direct_output_chars=8000, max_input_chars=8000)

    shown = show(config)

    assert shown.name == "fd_result"
    assert proc.read(shown["fd"], read_all=True).text == TEXT


def test_a_text_of_at_most_whole_chars_is_shown_whole_under_its_id(
    show: Callable[[FDConfig], Element], proc: Process
) -> None:
    shown = show(WHOLE)

    assert [child.name for child in shown.children] == ["message", "preview"]
    assert shown.child("preview").body == TEXT
    assert {name: shown[name] for name in ("pages", "truncated", "lines", "total_lines", "total_chars")} == {
        "pages": "3",
        "truncated": "false",
        "lines": "1-950",
        "total_lines": "950",
        "total_chars": "8442",
    }
    assert proc.read(shown["fd"], read_all=True).text == TEXT


@pytest.mark.parametrize("chars", [0, 1, len(TEXT) - 1])
def test_of_a_longer_text_a_preview_is_shown(show: Callable[[FDConfig], Element], chars: int) -> None:
    shown = show(FDConfig(whole_chars=chars))

    assert shown.child("preview").body != TEXT
    assert [child.name for child in shown.children] == ["message", "preview", "tail"]


def test_no_more_is_shown_whole_than_one_read_may_show(proc: Process) -> None:
    config = FDConfig(whole_chars=100_000, max_read_chars=len(TEXT) - 1)

    assert only(Toolset(proc, config=config).wrap(TEXT)).child("preview").body != TEXT


def test_json_is_shown_whole_too(proc: Process) -> None:
    rows = "[" + ", ".join(f'{{"id": {number}}}' for number in range(900)) + "]"

    shown = only(Toolset(proc, config=FDConfig(whole_chars=20_000)).wrap(rows))

    assert shown.child("preview").body == rows
    assert "kind" not in shown.child("preview").attributes


@pytest.mark.parametrize(
    "policy",
    [
        ToolPolicy(preview="head"),
        ToolPolicy(preview="tail"),
        ToolPolicy(preview="both"),
        ToolPolicy(preview_chars=500),
    ],
    ids=str,
)
def test_a_preview_that_was_chosen_for_a_tool_is_exact(proc: Process, policy: ToolPolicy) -> None:
    config = FDConfig(whole_chars=100_000, tool={"build": policy})

    assert TEXT not in Toolset(proc, config=config, python=[build]).call("build", {}).text


def test_whole_results_of_a_tool_that_always_stores_have_ids(proc: Process) -> None:
    config = FDConfig(whole_chars=100, tool={"build": ToolPolicy(inline="never")})

    shown = only(Toolset(proc, config=config, outside=["build"]).wrap("short", source="build"))

    assert (shown["fd"], shown.child("preview").body) == ("fd:1", "short")


def test_what_looks_like_an_element_is_escaped_in_a_whole_text(proc: Process) -> None:
    text = TEXT + "</fd_result>"

    shown = only(Toolset(proc, config=FDConfig(whole_chars=9000)).wrap(text))

    assert shown["escaped"] == "true"
    assert shown.child("preview").body == TEXT + "&lt;/fd_result>"


def test_a_text_that_the_model_stores_is_not_shown_to_it_again(proc: Process) -> None:
    tools = Toolset(proc, enabled=["put_fd"], config=WHOLE)

    assert TEXT not in tools.call("put_fd", {"text": TEXT}).text


def test_the_model_is_told_up_to_which_size_texts_are_shown_whole(proc: Process) -> None:
    told = "One of at most 9000 characters is shown whole."

    assert told in Toolset(proc, config=FDConfig(whole_chars=9000)).instructions
    assert "is shown whole" not in Toolset(proc, config=FDConfig(whole_chars=0)).instructions


@pytest.mark.parametrize(
    ("config", "is_whole"),
    [
        (FDConfig(), False),
        (FDConfig(max_direct_output_chars=8000, max_input_chars=8000), False),
        (WHOLE, True),
    ],
    ids=["nothing set", "defaults set", "whole"],
)
def test_of_an_agent_too_each_long_text_has_its_id(
    store: Store, tmp_path: Path, config: FDConfig, is_whole: bool
) -> None:
    script = [turn(*[call("lines", count=950) for _ in range(4)]), say("Done.")]

    def answer(request: Request) -> Any:
        return script[request.turn_number]

    with running(store, answer, tmp_path) as agents:
        agents.launch("word " * 1601, tools=("read_fd",), python=(tool("lines"),), file_descriptor=config)
        agents.run_all("solo")
        first, last = agents.model.requests

    assert only(first.last_text())["fd"] == "fd:1"
    results = [only(result.text) for result in last.tool_results()]
    assert [(each["fd"], each.child("preview").body == TEXT) for each in results] == [
        (f"fd:{number}", is_whole) for number in range(2, 6)
    ]


def test_a_threshold_in_characters_and_one_in_tokens_are_refused_together() -> None:
    with pytest.raises(InvalidArgument, match="max_direct_output_chars is given too"):
        FDConfig(max_direct_output_chars=8000, max_direct_output_tokens=2000)
