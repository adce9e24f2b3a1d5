"""Results carry what a call stored, showed or did; the journal and repeated calls keep it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fdstore import FDConfig, Toolset
from fdstore.client import Process, Store
from fdstore.elements.facts import NO_FACTS, ResultFacts
from fdstore.elements.kinds import FdContent
from fdstore.testing import Request, call, say, turn
from tests.on_redis.running_agents import READER, SMALL, lines, running, tool

LONG = "a long line\n" * 1000
PNG = b"\x89PNG\r\n\x1a\n" + bytes(300)


def test_a_read_a_search_and_a_list_carry_what_they_show(proc: Process) -> None:
    tools = Toolset(proc, enabled=["read_fd", "search_fd", "list_fds"])
    proc.create(LONG)

    page = tools.call("read_fd", {"fd": 1, "start": 2}).facts
    line = tools.call("read_fd", {"fd": "fd:1#L2-3"}).facts
    found = tools.call("search_fd", {"fd": 1, "pattern": "^a"}).facts
    listed = tools.call("list_fds", {}).facts

    pages = proc.stat("fd:1").pages
    shown = FdContent(
        fd="fd:1",
        page=2,
        pages=pages,
        continued=False,
        truncated=False,
        lines="334-666",
        total_lines=1000,
    )
    assert page == ResultFacts(shown=(shown,))
    assert line.shown[0].char_range == (13, 36)
    assert (found.search.fd, found.search.pattern, found.search.matches) == ("fd:1", "^a", 1000)
    assert listed.listed.total == 1


def test_an_error_carries_its_type_and_its_message(proc: Process) -> None:
    result = Toolset(proc).call("read_fd", {"fd": "fd:9"})

    error = result.facts.error
    assert (error.type, error.fd, result.facts.stored) == ("not_found", "fd:9", ())
    assert error.message in result.text


def test_a_function_carries_what_was_stored_of_each_block_and_which_placeholders_were_replaced(
    proc: Process,
) -> None:
    def report(text: str) -> list[dict[str, str]]:
        """Text blocks."""
        return [{"type": "text", "text": each} for each in (text, LONG, '<fd_result fd="fd:9">', LONG)]

    proc.create("one\n")
    result = Toolset(proc, python=[report]).call("report", {"text": "{{fd:1#L1}}"})

    assert [(stored.fd, stored.block) for stored in result.facts.stored] == [("fd:2", 1), ("fd:3", 3)]
    assert [stored.chars - stored.shown_chars for stored in result.facts.stored] == [
        len(LONG) - len(result.content[block]["text"]) for block in (1, 3)
    ]
    assert result.facts.expanded == ("fd:1#L1",)


def test_a_repeated_call_returns_the_same_facts(proc: Process) -> None:
    def report() -> str:
        """A long text."""
        return LONG

    tools = Toolset(proc, enabled=["write_fd"], python=[report])

    for name, arguments in (("report", {}), ("write_fd", {"data": "a note"})):
        first = tools.call(name, arguments, call_id=name)
        again = tools.call(name, arguments, call_id=name)
        assert first.facts == again.facts != NO_FACTS


def test_an_offloaded_output_has_the_facts_of_all_that_was_stored(proc: Process) -> None:
    tools = Toolset(proc)
    blocks = [{"type": "text", "text": "short"}, {"type": "text", "text": LONG}]

    first = tools.offload(blocks, "grep", "toolu_1")
    again = tools.offload(blocks, "grep", "toolu_1")
    parts = tools.offload_parts([None, PNG, LONG], "plot")
    failed = tools.offload(ValueError(LONG), "grep")

    assert [(each.fd, each.block) for each in first.facts.stored] == [("fd:1", 1)]
    assert again.facts == first.facts
    assert [(each.kind, each.block) for each in parts.facts.stored] == [("bytes", 1), (None, 2)]
    assert parts.facts.stored[0].size_bytes == len(PNG)
    assert failed.facts.fds == (failed.descriptor.fd,)
    assert tools.offload("short").facts == NO_FACTS


def test_the_journal_keeps_the_facts_of_results_inputs_and_preloads(store: Store, tmp_path: Path) -> None:
    def script(request: Request) -> Any:
        if "READER" in request.system:
            return say("Read.")
        return [
            turn(call("lines", count=200), call("echo", words='<fd_result fd="fd:9">')),
            call("spawn", program_name="reader", query="Read.", additional_preload_fds=["fd:1#L1", "fd:2"]),
            say("Done."),
        ][request.turn_number]

    with running(store, script, tmp_path) as agents:
        agents.launch(
            query="A long task.\n" * 20,
            others=(READER,),
            tools=("read_fd", "spawn"),
            python=(tool("lines"), tool("echo")),
            file_descriptor=SMALL,
        )
        agents.run_all("solo")
        stored, forged, spawned = [result.facts for result in agents.results()]
        [start] = [each for each in map(json.loads, agents.journal()) if each["kind"] == "start"]
        [child] = [each for each in map(json.loads, agents.journal("solo.1")) if each["kind"] == "start"]

    assert [(each.fd, each.chars) for each in stored.stored] == [("fd:2", len(lines(200)))]
    assert forged == NO_FACTS
    assert [(each.process, each.state) for each in spawned.processes] == [("solo.1", "exited")]
    assert [each["fd"] for each in start["input"]["stored"]] == ["fd:1"]
    assert "preloads" not in start
    assert [each["page"] for each in child["preloads"]["shown"]] == ["all"]
    assert [each["fd"] for each in child["preloads"]["stored"]] == ["fd:2"]


def test_an_answer_of_a_child_that_is_stored_is_among_the_facts(store: Store, tmp_path: Path) -> None:
    def script(request: Request) -> Any:
        if "READER" in request.system:
            return say(LONG)
        return [call("spawn", program_name="reader", query="Read."), say("Done.")][request.turn_number]

    config = FDConfig(max_direct_output_chars=100)
    with running(store, script, tmp_path) as agents:
        agents.launch(others=(READER,), tools=("read_fd", "spawn"), file_descriptor=config)
        agents.run_all("solo")
        [spawned] = [result.facts for result in agents.results()]

    assert [(each.process, each.exit_code) for each in spawned.processes] == [("solo.1", 0)]
    assert [each.chars for each in spawned.stored] == [len(LONG)]
