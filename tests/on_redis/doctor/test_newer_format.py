"""Trees written by a newer fdstore: a tree records its format, an older reader raises an error, an older
worker leaves the process to newer ones, and unknown fields are kept."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fdstore.agents.loop.program_loader import Bundle
from fdstore.client import Process, Store
from fdstore.errors import InvalidProgram, NewerFormat
from fdstore.store.clock import redis_now
from fdstore.store.keys import TreeKeys, process_keys
from fdstore.store.processes import leases, process_records, processes
from fdstore.store.record_format import FORMAT
from fdstore.store.trees.collect_trees import collect_tree
from fdstore.testing import Request, call, say
from fdstore_workers.sweeper import sweep
from tests.on_redis.running_agents import Agents, running, tool

Execute = Callable[..., Any]
TREE = "fdstore:{solo}"
NEWER = FORMAT + 1


def seconds_until_check(store: Store, execute: Execute, process: str = "solo") -> float:
    """Return the seconds until the sweep checks a process again."""
    due = float(execute("ZSCORE", f"{TREE}:leases", process))
    return due - store.run(redis_now())


# --- the format of a tree


def test_a_tree_records_its_format(store: Store, proc: Process, execute: Execute) -> None:
    assert execute("HGET", "fdstore:{triage}", "format") == b"1"
    assert FORMAT == 1


def test_reading_a_newer_tree_raises_an_upgrade_error(store: Store, proc: Process, execute: Execute) -> None:
    proc.child()
    execute("HSET", "fdstore:{triage}", "format", NEWER)
    said = r"tree triage was written by a newer fdstore \(format 2; this one knows 1\): upgrade this one"

    for look in (
        lambda: store.process("triage"),
        lambda: store.process("triage.1"),
        lambda: store.tree("triage"),
        lambda: store.run(collect_tree(TreeKeys("fdstore", "triage"))),
    ):
        with pytest.raises(NewerFormat, match=said):
            look()


def test_a_newer_tree_is_listed_and_hides_no_other(store: Store, proc: Process, execute: Execute) -> None:
    store.process("other")
    execute("HSET", "fdstore:{triage}", "format", NEWER)

    found = store.survey()

    assert [tree.id for tree in found.trees] == ["other"]
    assert [each.what for each in found.unreadable] == ["tree triage"]
    assert "newer fdstore: format 2" in found.unreadable[0].problem


def test_an_old_collector_leaves_a_newer_tree_alone(store: Store, proc: Process, execute: Execute) -> None:
    execute("HSET", "fdstore:{triage}", "format", NEWER, "used_at", 1)

    with pytest.raises(NewerFormat):
        store.run(collect_tree(TreeKeys("fdstore", "triage")))

    assert execute("EXISTS", "fdstore:{triage}:triage") == 1


# --- workers


def test_an_old_worker_leaves_an_agent_of_a_newer_tree_ready(
    store: Store, execute: Execute, tmp_path: Path
) -> None:
    with running(store, [say("Done.")], tmp_path) as agents:
        agents.launch()
        execute("HSET", TREE, "format", NEWER)

        with pytest.raises(NewerFormat):
            agents.attempt("solo")

        execute("HSET", TREE, "format", FORMAT)
        assert (agents.record().state, agents.record().attempt) == ("ready", 0)
        assert agents.attempt("solo") == "ended"
        assert agents.answer() == "Done."


def test_the_sweep_of_an_old_worker_wakes_newer_workers_at_doubling_intervals(
    store: Store, execute: Execute, tmp_path: Path
) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        execute("HSET", TREE, "format", NEWER)
        pauses = []
        for _ in range(10):
            agents.expire("solo")
            woken: list[str] = []
            sweep(store, woken.append)
            assert woken == ["solo"]
            pauses.append(round(seconds_until_check(store, execute)))

    assert pauses == [3, 3, 3, 6, 12, 24, 48, 96, 192, 192]


def change_bundle(execute: Execute, change: Callable[[dict[str, Any]], None]) -> bytes:
    """Rewrite the program of `solo` as a newer version would; return the previous one."""
    [digest] = execute("HKEYS", f"{TREE}:programs")
    before: bytes = execute("HGET", f"{TREE}:programs", digest)
    said = msgspec.json.decode(before)
    change(said["programs"]["solo"])
    execute("HSET", f"{TREE}:programs", digest, msgspec.json.encode(said))
    return before


def add_key(program: dict[str, Any]) -> None:
    program["later"] = {"input": 1}


def a_new_key_inside(program: dict[str, Any]) -> None:
    program["limits"]["tree_token_budget"] = 5


def a_new_setting(program: dict[str, Any]) -> None:
    program["file_descriptor"]["preview"] = "both"


def a_new_tool(program: dict[str, Any]) -> None:
    program["tools"] = ["read_fd", "translate_fd"]


def a_new_provider(program: dict[str, Any]) -> None:
    program["provider"] = "another"


@pytest.mark.parametrize("change", [add_key, a_new_key_inside, a_new_setting, a_new_tool, a_new_provider])
def test_an_old_worker_returns_an_agent_of_a_newer_program_to_the_queue(
    store: Store, execute: Execute, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    """Regression test: this failed the agent permanently."""
    with running(store, [say("Done.")], tmp_path) as agents:
        agents.launch(tools=("read_fd",))
        before = change_bundle(execute, change)

        assert agents.attempt("solo") == "given back"

        assert (agents.record().state, agents.record().losses) == ("ready", 0)
        assert agents.woken == []  # otherwise old workers would pass it to each other without a pause
        [digest] = execute("HKEYS", f"{TREE}:programs")
        execute("HSET", f"{TREE}:programs", digest, before)
        assert agents.attempt("solo") == "ended"
        assert agents.answer() == "Done."


def test_the_pause_doubles_with_each_return_to_the_queue(
    store: Store, execute: Execute, tmp_path: Path
) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        change_bundle(execute, add_key)
        pauses = []
        for _ in range(4):
            agents.attempt("solo")
            agents.expire("solo")
            sweep(store, lambda _: None)
            pauses.append(round(seconds_until_check(store, execute)))

    assert pauses == [3, 6, 24, 96]


def test_running_a_newer_agent_locally_raises_an_upgrade_error_and_leaves_it_ready(
    store: Store, execute: Execute, tmp_path: Path
) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        change_bundle(execute, a_new_tool)

        with pytest.raises(NewerFormat, match="upgrade this one"):
            agents.attempt("solo", wait_here=True)

        assert agents.record().state == "ready"


def test_an_invalid_program_fails_its_agent(store: Store, execute: Execute, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        [digest] = execute("HKEYS", f"{TREE}:programs")
        execute("HSET", f"{TREE}:programs", digest, "{")

        assert agents.attempt("solo") == "ended"

        assert agents.record().state == "failed"
    with pytest.raises(InvalidProgram):
        Bundle.from_json("{")


# --- fields and records that are not known here


def test_fields_added_by_a_newer_version_are_ignored_and_kept(
    store: Store, execute: Execute, tmp_path: Path
) -> None:
    def script(request: Request) -> Any:
        return call("echo", words="a", id="toolu_a") if request.turn_number == 0 else say("Done.")

    with running(store, script, tmp_path) as agents:
        proc = agents.launch(python=(tool("echo"),))
        proc.create("text")
        limits = msgspec.json.decode(execute("HGET", TREE, "limits")) | {"tree_tokens": 7}
        execute("HSET", TREE, "newer", "1", "limits", msgspec.json.encode(limits))
        execute("HSET", f"{TREE}:solo", "newer", "2")
        execute("HSET", f"{TREE}:solo:fd:1", "newer", "3")
        brief = msgspec.json.decode(execute("LINDEX", f"{TREE}:solo:journal", 0)) | {"newer": [4]}
        execute("LSET", f"{TREE}:solo:journal", 0, msgspec.json.encode(brief))

        assert store.process("solo").read("fd:1").text == "text"
        assert agents.attempt("solo") == "ended"

        assert (agents.record().state, agents.answer()) == ("exited", "Done.")
    keys = [TREE, f"{TREE}:solo", f"{TREE}:solo:fd:1"]
    assert [execute("HGET", key, "newer") for key in keys] == [b"1", b"2", b"3"]
    assert b'"tree_tokens":7' in execute("HGET", TREE, "limits")
    assert b'"newer":[4]' in execute("LINDEX", f"{TREE}:solo:journal", 0)


def launch_half_run_agent(agents: Agents, record: str, execute: Execute) -> None:
    """Launch an agent whose journal holds a start record and a record of a newer worker."""
    agents.launch(python=(tool("echo"),))
    keys = process_keys("fdstore", "solo")
    claim = agents.store.run(leases.claim(keys, "newer"))
    assert isinstance(claim, leases.Claim)
    execute("RPUSH", f"{TREE}:solo:journal", '{"kind":"start","system":"S","content":"Go."}', record)
    agents.lose("solo")


def test_an_unknown_kind_of_journal_record_is_skipped_and_kept(
    store: Store, execute: Execute, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record = '{"kind":"condensed","results":["toolu_a"]}'
    with running(store, [say("Done.")], tmp_path) as agents:
        launch_half_run_agent(agents, record, execute)

        with caplog.at_level(logging.WARNING, "fdstore"):
            assert agents.attempt("solo") == "ended"

        assert agents.answer() == "Done."
        assert agents.journal()[2] == record.encode()
        assert len(agents.journal()) == 4
    assert "solo: journal records of newer kinds are skipped: condensed" in caplog.text


def test_an_agent_with_an_unknown_kind_of_task_is_returned_to_the_queue(
    store: Store, execute: Execute, tmp_path: Path
) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        execute("LSET", f"{TREE}:solo:journal", 0, '{"kind":"revived","of":"another"}')

        assert agents.attempt("solo") == "given back"

        assert (agents.record().state, agents.record().losses) == ("ready", 0)


def test_a_damaged_journal_fails_its_agent_with_a_clear_reason(
    store: Store, execute: Execute, tmp_path: Path
) -> None:
    with running(store, [], tmp_path) as agents:
        launch_half_run_agent(agents, '{"kind":"result"}', execute)

        assert agents.attempt("solo") == "ended"

        record = store.run(process_records.record("fdstore", "solo"))
        assert record.state == "failed"
        assert (record.reason or "").startswith("the journal of process solo cannot be read")


def test_a_newer_tree_can_still_be_killed(store: Store, proc: Process, execute: Execute) -> None:
    execute("HSET", "fdstore:{triage}", "format", NEWER)

    assert store.run(processes.cancel("fdstore", "triage")).cancelled == ("triage",)

    execute("HSET", "fdstore:{triage}", "format", FORMAT)
