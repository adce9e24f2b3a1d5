"""Pipelines whose worker is killed, stops or is not there yet, and agents that wait for pipelines."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from fdstore.errors import StreamBroken
from fdstore.store.processes import leases, waiting
from fdstore.testing import ScriptedModel, call, say
from tests.elements import Element, only
from tests.waiting import PATIENCE_S, stretched, wait_until
from tests.with_workers.agent_harness import launch
from tests.with_workers.pipe_bench import Bench, command_name, descendants_of

# --- violence


@pytest.mark.thorough("another lease that ends")
def test_a_pipeline_of_a_killed_worker_keeps_its_output_without_eof_and_is_not_rerun(
    empty_bench: Bench,
) -> None:
    text = "".join(f"line {number}\n" for number in range(1_000_000))
    victim = empty_bench.start_worker(2)
    with empty_bench.proc.open_stream(source="upstream") as upstream:
        upstream.write(text)
        upstream.flush()
        made = empty_bench.pipe("cat", in_fd=upstream.fd, tee=[1])
        follower = empty_bench.proc.follow(made["fd"])
        followed = [next(follower)]
        left = descendants_of(victim.working_pid)
        empty_bench.start_worker(2)

        killed_at = time.time()
        victim.kill()
        ended = empty_bench.wait(made["process"])

    assert (ended["state"], ended["reason"]) == ("failed", "worker_lost")
    record = empty_bench.record(made["process"])
    assert (record.attempt, empty_bench.codes(made["process"])) == (1, None)
    # at the second sweep after the lease expired, if the victim was the sweeper
    assert (record.ended_at or 0) - killed_at < leases.LEASE_S + 2 * leases.SWEEP_EVERY_S + stretched(8)
    assert empty_bench.proc.stat(made["stderr_fd"]).reason == "writer_lost"
    for fd in (made["fd"], made["tee_fds"]):
        stored = empty_bench.proc.read(fd, read_all=True)
        assert text.startswith(stored.text)
        assert (stored.state, stored.reason, stored.eof) == ("broken", "writer_lost", False)
    with pytest.raises(StreamBroken, match="writer_lost"):
        followed.extend(follower)
    assert "".join(followed) == empty_bench.text(made["fd"])
    wait_until(lambda: not any(command_name(pid) for pid in left))


@pytest.mark.thorough("it waits for the whole grace; a killed worker is tested")
def test_a_pipeline_that_outlasts_the_shutdown_grace_ends_as_if_its_worker_had_died(
    empty_bench: Bench,
) -> None:
    worker = empty_bench.start_worker(2)
    made = empty_bench.pipe("sleep 600", "cat", in_fd="new")
    short = empty_bench.pipe("cat", in_fd="new")
    empty_bench.wait_until_running("sleep")
    left = descendants_of(worker.working_pid)

    worker.terminate()
    empty_bench.show("write_fd", fd=short["in_fd"], data="text\n", eof=True)

    assert empty_bench.wait(short["process"])["exit_code"] == "0"
    assert empty_bench.text(short["fd"]) == "text\n"
    ended = empty_bench.wait(made["process"])
    assert (ended["state"], ended["reason"]) == ("failed", "worker_lost")
    assert empty_bench.proc.stat(made["fd"]).reason == "writer_lost"
    assert worker.process.wait(PATIENCE_S) == 0
    wait_until(lambda: not any(command_name(pid) for pid in left))


def test_a_pipeline_that_is_still_queued_can_be_killed(empty_bench: Bench) -> None:
    given = empty_bench.proc.create("text").fd
    made = empty_bench.pipe("cat", in_fd=given)

    killed = empty_bench.show("kill", target=made["process"])
    empty_bench.start_worker(1)
    ended = empty_bench.run("cat", in_fd=given)

    assert (killed["state"], killed["reason"]) == ("cancelled", "killed")
    assert empty_bench.proc.stat(made["fd"]).reason == "cancelled"
    assert (ended["exit_code"], empty_bench.text(ended["fd"])) == ("0", "text")
    assert empty_bench.show("kill", target=made["process"]) == killed


# --- agents


PROGRAM = """
[model]
name = "any"
[prompt]
system = "You are an agent."
[tools]
enabled = ["pipe", "wait", "kill", "write_fd", "read_fd"]
[commands]
allow = ["cat", "sort", "uniq", "sleep"]
"""


def results_of(bench: Bench, folder: Path, concurrency: int, script: list[Any]) -> list[Element]:
    """Run an agent to its end on its own worker, and return the results of its calls."""
    (folder / "agent.toml").write_text(PROGRAM)
    with ScriptedModel(script) as model:
        bench.model = model
        bench.start_worker(concurrency)
        root = launch(bench.store, folder / "agent.toml")
        assert bench.store.run(waiting.wait_until_ended("fdstore", [root], 30)), "it did not end"
        assert bench.record(root).exit_code == 0
        return [only(result.text) for result in model.requests[-1].tool_results()]


def test_a_waiting_agent_frees_the_only_worker_slot_for_its_pipeline(
    empty_bench: Bench, tmp_path: Path
) -> None:
    script = [
        call("pipe", commands=["sort", "uniq -c"], in_fd="new"),
        call("write_fd", fd="fd:1", data="b\na\nb\n", eof=True),
        call("wait", target="fd:2"),
        call("read_fd", fd="fd:2"),
        say("Done."),
    ]

    piped, written, waited, read = results_of(empty_bench, tmp_path, 1, script)

    assert (piped["fd"], piped["stderr_fd"], piped["in_fd"]) == ("fd:2", "fd:3", "fd:1")
    assert (written["total_chars"], written["state"]) == ("6", "sealed")
    assert (waited["state"], waited["exit_code"]) == ("exited", "0")
    assert (read.body or "").split() == ["1", "a", "2", "b"]
    assert read["chain"] == "0,0"


def test_a_command_outside_the_allowed_list_is_refused(empty_bench: Bench, tmp_path: Path) -> None:
    script = [call("pipe", commands=["cat", "rm -rf x"]), say("Done.")]

    [refused] = results_of(empty_bench, tmp_path, 1, script)

    assert refused["type"] == "unknown_program"
    assert refused.message.strip() == "there is no program 'rm'; there are: cat, sort, uniq, sleep"
