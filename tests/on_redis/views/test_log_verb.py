"""`fdstore log`: the conversation of a process as a person reads it, and as JSON lines."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from fdstore.cli import cli
from fdstore.client import Store
from fdstore.store.processes import pipelines
from fdstore.testing import Request, call, fail, say
from fdstore.tools.process_task import PipeTask, encode_task
from tests.on_redis.running_agents import READER, Agents, StopAfterClaim, running, tool
from tests.waiting import PATIENCE_S

Command = Callable[..., Result]

SCRIPT = [
    call("lines", count=5000),
    fail(529, message="all are busy", retry_after=0.01),
    call("spawn", program_name="reader", query="Read it."),
    say("I have read it."),
    call("breaks", words="no disk"),
    say("One is red: \x1b[31mtest_a\x1b[m \u202egpj.exe"),
]


@pytest.fixture
def log(redis_url: str) -> Command:
    """`log("solo", "-n", "3")`"""
    return lambda *args: CliRunner().invoke(cli, ["log", *args], env={"FDSTORE_URL": redis_url})


@pytest.fixture
def ended(store: Store, tmp_path: Path) -> Iterator[Agents]:
    """A tree that has ended, with a failed try, a child, and a worker that gave it back."""
    with running(store, SCRIPT, tmp_path) as agents:
        functions = (tool("lines"), tool("breaks"))
        agents.launch("Which test fails?", tools=("read_fd", "spawn"), python=functions, others=[READER])
        agents.attempt("solo", stopping=StopAfterClaim(agents, "solo"))
        agents.run_all("solo")
        yield agents


def test_the_log_of_an_agent_reads_from_its_task_to_its_end(log: Command, ended: Agents) -> None:
    shown = log("solo").output
    lines = shown.splitlines()

    labels = [line[21:30].strip() for line in lines if line[:4].isdecimal()]
    assert labels == [
        *("task", "takeover", "system", "answer", "call", "result", "retry", "answer", "call"),
        *("worker", "result", "answer", "call", "error", "answer", "end"),
    ]
    assert "result    fd:1, stored: 13 pages, 48,893 characters  (lines, " in shown
    assert "attempt 2 on here: its worker returned it" in shown
    assert "try 1: the model answered 529 overloaded_error: all are busy; asked again after 0.0 s" in shown
    assert 'call      spawn(program_name="reader", query="Read it.")' in shown
    assert "result    solo.1 exited with code 0  (spawn, " in shown
    assert "error     RuntimeError: no disk  (breaks, " in shown
    assert "exited with code 0" in lines[-2]
    assert re.search(r"\d m?s in all, tokens: [\d,]+ in", lines[-1])


def test_nothing_that_a_model_writes_reaches_the_terminal_unescaped(log: Command, ended: Agents) -> None:
    shown = log("solo").output

    assert "One is red: \\u{1b}[31mtest_a\\u{1b}[m \\u{202e}gpj.exe" in shown
    assert not set("\x1b\u202e") & set(shown)


def test_json_lines_are_the_entries_with_their_times(log: Command, ended: Agents) -> None:
    entries = [msgspec.json.decode(line) for line in log("solo", "--json").output.splitlines()]

    assert [each["kind"] for each in entries[:3]] == ["task", "attempt", "system"]
    assert [each["at"] for each in entries] == sorted(each["at"] for each in entries)
    [stored] = [each for each in entries if "stored" in each.get("facts", {})]
    assert (stored["fds"], stored["tool"]) == (["fd:1"], "lines")
    assert stored["facts"]["stored"][0]["pages"] == 13
    assert entries[-1]["state"] == "exited"


def test_the_last_entries_and_those_of_a_time_are_found_without_the_others(
    log: Command, ended: Agents
) -> None:
    whole = log("solo", "--json").output.splitlines()

    assert log("solo", "--json", "-n", "3").output.splitlines() == whole[-3:]
    assert log("solo", "--json", "-n", "9999").output.splitlines() == whole
    assert log("solo", "--json", "--since", "1h").output.splitlines() == whole
    assert log("solo", "--json", "--since", "0s").output == ""


def test_an_agent_that_waits_says_for_what_and_a_client_has_no_conversation(
    log: Command, store: Store, tmp_path: Path
) -> None:
    with running(store, SCRIPT[:3:2], tmp_path) as agents:
        agents.launch(tools=("read_fd", "spawn"), python=(tool("lines"),), others=[READER])
        assert "now       waits for a worker" in log("solo").output
        agents.attempt("solo")
        assert "now       waits for solo.1; its slot is free" in log("solo").output
        assert "waits for a worker" in log("solo.1").output

    store.process("mine")
    found = log("mine")
    assert (found.exit_code, found.stdout) == (0, "")
    assert "mine is run by a client program: it has no conversation" in found.stderr
    unknown = log("nowhere")
    assert unknown.exit_code == 1
    assert "not_found: process nowhere does not exist" in unknown.stderr


def test_a_pipeline_shows_its_commands_and_its_state(log: Command, store: Store) -> None:
    proc = store.process("solo")
    brief = PipeTask(commands=[["grep", "-c", "a b"], ["sort"]], page_size=4000)
    begun = store.run(pipelines.start(proc.handle, encode_task(brief), title="grep"))

    shown = log(begun.process).output

    assert "pipeline  grep -c 'a b' | sort" in shown
    assert "now       waits for a worker" in shown


def test_following_prints_each_entry_once_until_the_end(log: Command, store: Store, tmp_path: Path) -> None:
    outcome: list[Result] = []
    follower = threading.Thread(target=lambda: outcome.append(log("solo", "-f", "--json")))

    def script(request: Request) -> object:
        if len(agents.model.requests) == 1:
            return call("echo", words="a")
        follower.start()  # in mid-conversation
        return say("Done.")

    with running(store, script, tmp_path) as agents:
        agents.launch(python=(tool("echo"),))
        agents.attempt("solo")
        follower.join(PATIENCE_S)

    [found] = outcome
    assert found.output == log("solo", "--json").output
