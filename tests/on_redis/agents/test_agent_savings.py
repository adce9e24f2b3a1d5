"""`fdstore saved TREE` counts what was kept out of the conversations of agents, from their journals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fdstore.agents.loop.context_savings import read_agent_savings
from fdstore.cli import cli
from fdstore.client import Store
from fdstore.inspector.web.journal_tracks import JournalTracks
from fdstore.inspector.web.saved import read_saved
from fdstore.store.processes.savings import Saved
from fdstore.testing import Request, Usage, call, say, turn
from fdstore.text.tokens import estimate_tokens
from fdstore.tools.clearing import ClearingConfig
from tests.on_redis.running_agents import READER, SMALL, Agents, lines, running, tool

LONG = "".join(f"an answer in many words, line {number}\n" for number in range(40))


def saved(store: Store, process: str = "solo") -> dict[tuple[str, str], Saved]:
    found = store.run(read_agent_savings("fdstore", process))
    assert found.unreadable == []
    return {(row.process, row.tool): row for row in found.rows}


def script(request: Request) -> Any:
    if "READER" in request.system:
        return say(LONG)
    return [
        turn(call("lines", count=200), call("echo", words="short")),
        turn(call("read_fd", fd="fd:1", read_all=True), call("read_fd", fd="fd:9")),
        turn(call("spawn", program_name="reader", query="Read it.")),
        turn(call("echo", words="b"), usage=Usage(input_tokens=9000)),
        say("Done."),
    ][request.turn_number]


def play(store: Store, folder: Path) -> Agents:
    with running(store, script, folder) as agents:
        agents.launch(
            query="A long task.\n" * 20,
            others=(READER,),
            tools=("read_fd", "spawn"),
            python=(tool("lines"), tool("echo")),
            file_descriptor=SMALL,
            clearing=ClearingConfig(clear_at_tokens=1000, keep_turns=2),
        )
        agents.run_all("solo")
    return agents


def test_what_an_agent_stored_saw_read_and_cleared_is_counted(store: Store, tmp_path: Path) -> None:
    agents = play(store, tmp_path)

    rows = saved(store)
    preview, _, page, *_ = [str(result.content) for result in agents.results()]
    text = lines(200)
    of_lines = rows["solo", "lines"]
    assert (of_lines.kept, of_lines.stored_chars, of_lines.shown_chars) == (1, len(text), len(preview))
    assert of_lines.kept_chars == len(text) - len(preview)
    assert of_lines.stored_tokens - estimate_tokens(text) <= estimate_tokens(text) * 0.05
    assert of_lines.kept_tokens == of_lines.stored_tokens - of_lines.shown_tokens
    of_read = rows["solo", "read_fd"]
    assert (of_read.read, of_read.read_chars) == (1, len(page))
    assert rows["solo", "spawn"].stored_chars == len(LONG)
    assert rows["solo", "(input)"].stored_chars == len("A long task.\n" * 20)
    assert (of_lines.cleared, of_read.cleared) == (1, 1)
    line = "[Cleared to save room; the same call shows it again.]"
    assert of_read.cleared_chars == len(page) - len(line)
    assert ("solo", "echo") not in rows


def test_the_inspector_draws_the_same_turn_by_turn(store: Store, tmp_path: Path) -> None:
    play(store, tmp_path)
    rows = [row for (process, _), row in saved(store).items() if process == "solo"]
    [solo] = [each for each in store.tree("solo").members if each.id == "solo"]

    tracks = store.run(JournalTracks().read(store.prefix, [solo]))
    found = store.run(read_saved(store.prefix, [solo], tracks))

    curve = found.curve
    assert curve is not None
    assert (curve.turns, curve.sent) == (5, solo.input_tokens)
    assert curve.kept == sum(row.kept_tokens for row in rows) > 0
    assert curve.read == sum(row.read_tokens for row in rows) > 0
    assert curve.cleared == pytest.approx(sum(row.cleared_tokens for row in rows), abs=4)
    assert [point.turn for point in curve.points] == [1, 2, 3, 4, 5]
    of_input = rows_by_tool(rows)["(input)"].kept_tokens
    first = curve.points[0]
    assert first.without - first.sent == of_input
    assert found.metered is None


def rows_by_tool(rows: list[Saved]) -> dict[str, Saved]:
    return {row.tool: row for row in rows}


def test_the_verb_shows_agents_and_what_is_known_of_them_alone(
    store: Store, tmp_path: Path, redis_url: str
) -> None:
    play(store, tmp_path)

    def run(*words: str) -> str:
        return CliRunner().invoke(cli, ["saved", *words, "--url", redis_url], env={"COLUMNS": "300"}).output

    table, everything = run("solo"), run()
    by_process = run("solo", "--by", "process", "--json").split("\n")[:-1]
    totals = {row["process"]: row for row in map(json.loads, by_process)}

    head = table.split("\n")[0].split()
    assert head[:5] == ["TOOL", "STORED", "~TOKENS", "SHOWN", "~TOKENS"]
    assert "CLEARED" in head
    assert everything == table
    assert totals["solo"]["stored_chars"] == sum(row.stored_chars for row in saved(store).values())
    assert totals["solo"]["cleared"] == 2


def test_a_process_counts_with_all_below_it_and_a_copy_only_what_is_its_own(
    store: Store, tmp_path: Path
) -> None:
    def forking(request: Request) -> Any:
        if any("You are copy" in result.text for result in request.tool_results()):
            return call("read_fd", fd="fd:1") if request.turn_number == 2 else say("Read.")
        return [call("lines", count=200), call("fork", prompts=["read it"]), say("Done.")][
            request.turn_number
        ]

    with running(store, forking, tmp_path) as agents:
        agents.launch(tools=("read_fd", "fork"), python=(tool("lines"),), file_descriptor=SMALL)
        agents.run_all("solo")

    assert set(saved(store)) == {("solo", "lines"), ("solo.1", "read_fd")}
    assert set(saved(store, "solo.1")) == {("solo.1", "read_fd")}
