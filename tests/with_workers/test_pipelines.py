"""Pipelines on real worker processes: their outputs, how they end, and what remains of them."""

from __future__ import annotations

from typing import Any

import pytest

import fdstore
from tests.elements import only
from tests.with_workers.pipe_bench import Bench

# --- codes


@pytest.mark.parametrize(
    ("given", "type_", "named"),
    [
        ({"commands": ["cat", "nope -x", "cat"]}, "unknown_program", "nope"),
        ({"commands": ["cat", "/bin/ls"]}, "unknown_program", "/bin/ls"),
        ({"commands": ["../usr/bin/cat"]}, "unknown_program", "../usr/bin/cat"),
        ({"commands": ["env cat"]}, "unknown_program", "env"),
        ({"commands": ["cat 'a"]}, "invalid_argument", "commands"),
        ({"commands": ["cat | sort"]}, "invalid_argument", "no shell"),
        ({"commands": ["cat"], "in_fd": "fd:7"}, "not_found", "fd:7"),
        ({"commands": ["cat"], "tee": [2]}, "invalid_argument", "tee"),
        ({"commands": []}, "invalid_argument", "commands"),
    ],
)
def test_a_command_that_cannot_run_is_refused_by_name_and_creates_nothing(
    bench: Bench, given: dict[str, Any], type_: str, named: str
) -> None:
    bench.proc.create("text")
    before = bench.keys()

    refused = bench.tools.call("pipe", given)

    assert refused.is_error
    assert only(refused.content)["type"] == type_
    assert named in only(refused.content).message
    assert bench.keys() == before


# --- chains, tees, branches


def test_a_pipeline_on_the_growing_output_of_another_ends_when_that_ends(bench: Bench) -> None:
    first = bench.pipe("cat", in_fd="new")
    second = bench.pipe("cat", "grep nope", in_fd=first["fd"])
    third = bench.pipe("wc -l", in_fd=first["fd"])
    bench.show("write_fd", fd=first["in_fd"], data="one\n")
    seen = bench.show("read_fd", fd=first["fd"], mode="line", wait_seconds=20)
    assert (seen.body, seen["state"], seen["eof"]) == ("one\n", "open", "false")
    assert "chain" not in seen.attributes
    assert bench.record(third["process"]).state == "running"

    bench.show("write_fd", fd=first["in_fd"], data="two\n", eof=True)
    bench.wait(second["process"])
    bench.wait(third["process"])

    read = bench.show("read_fd", fd=second["fd"])
    assert (read["eof"], read["exit_code"], read["chain"]) == ("true", "1", "0 0,1")
    counted = bench.show("read_fd", fd=third["fd"])
    assert ((counted.body or "").strip(), counted["chain"]) == ("2", "0 0")
    assert bench.proc.read(second["fd"]).chain == "0 0,1"


def test_chain_exit_codes_appear_only_after_the_pipeline_ended(bench: Bench) -> None:
    given = bench.proc.create("x" * 9000).fd

    ended = bench.run("cat", "cat", in_fd=given)

    assert "chain" not in bench.show("read_fd", fd=ended["fd"], start=1).attributes
    assert bench.show("read_fd", fd=ended["fd"], start=3)["chain"] == "0,0"


def test_a_source_that_outlives_its_reader_has_no_exit_codes_in_the_chain_yet(bench: Bench) -> None:
    first = bench.pipe("cat", in_fd="new")
    second = bench.pipe("cat", in_fd=first["fd"])
    bench.show("write_fd", fd=first["in_fd"], data="one\ntwo\n")

    third = bench.run("head -n 1", in_fd=second["fd"])

    read = bench.show("read_fd", fd=third["fd"])
    assert (read.body, read["eof"], read["chain"]) == ("one\n", "true", "? ? 0")
    assert bench.record(first["process"]).state == bench.record(second["process"]).state == "running"
    bench.show("write_fd", fd=first["in_fd"], data="", eof=True)
    bench.wait(second["process"])
    assert bench.text(second["fd"]) == "one\ntwo\n"
    assert bench.show("read_fd", fd=second["fd"])["chain"] == "0 0"


def test_a_source_ends_with_its_last_reader_when_no_other_process_holds_its_output(bench: Bench) -> None:
    source = bench.pipe("yes")
    reader = bench.pipe("head -n 100000", in_fd=source["fd"])
    bench.show("close_fd", fd=source["fd"])

    assert bench.wait(reader["process"])["exit_code"] == "0"
    ended = bench.wait(source["process"])

    assert bench.text(reader["fd"]) == "y\n" * 100_000
    assert (ended["state"], ended["reason"]) == ("exited", "closed")
    assert bench.codes(source["process"]) in ("141", "143")  # SIGPIPE, or SIGTERM if that came first
    bench.assert_nothing_runs(2)


def test_a_silent_pipeline_without_readers_ends(bench: Bench) -> None:
    made = bench.pipe("sleep 600", "cat", tee=[1])
    bench.wait_until_running("sleep")

    bench.show("close_fd", fd=made["tee_fds"])
    bench.show("close_fd", fd=made["fd"])
    ended = bench.wait(made["process"], 20)

    assert (ended["state"], ended["reason"]) == ("exited", "closed")
    assert bench.proc.stat(made["stderr_fd"]).state == "sealed"
    bench.assert_nothing_runs(5)


# --- violence


def test_a_repeated_kill_is_harmless_and_leaves_nothing_running(bench: Bench) -> None:
    made = bench.pipe("sleep 600", "cat")
    bench.wait_until_running("sleep")

    first = bench.tools.call("kill", {"target": made["process"]})
    again = bench.tools.call("kill", {"target": made["fd"]})

    assert first == again
    assert (only(first.content)["state"], only(first.content)["reason"]) == ("cancelled", "killed")
    assert bench.proc.stat(made["fd"]).reason == "cancelled"
    bench.assert_nothing_runs(10)
    assert bench.tools.call("kill", {"target": made["process"]}) == first


def test_a_kill_releases_the_input_so_that_its_source_can_end(bench: Bench) -> None:
    source = bench.pipe("yes")
    reader = bench.pipe("sleep 600", in_fd=source["fd"])
    bench.wait_until_running("sleep")
    bench.show("close_fd", fd=source["fd"])

    bench.show("kill", target=reader["process"])

    assert bench.redis.exists(f"fdstore:{{{bench.proc.id}}}:{reader['process']}:fds") == 0
    ended = bench.wait(source["process"])
    assert (ended["state"], ended["reason"]) == ("exited", "closed")
    bench.assert_nothing_runs(10)


def test_a_broken_input_delivers_its_stored_text_and_fails_the_pipeline(bench: Bench) -> None:
    with bench.proc.open_stream(source="upstream") as writer:
        writer.write("half\n")
        writer.flush()
        made = bench.pipe("cat", in_fd=writer.fd)
        bench.show("read_fd", fd=made["fd"], mode="line", wait_seconds=20)
        writer.fail("power cut")

    ended = bench.wait(made["process"])

    assert (ended["state"], ended["reason"]) == ("failed", "upstream_broken")
    assert bench.text(made["fd"]) == "half\n"
    assert bench.proc.stat(made["fd"]).reason == "upstream_broken"


@pytest.mark.parametrize(
    ("limits", "command", "reason"),
    [
        ({"stream_idle_seconds": 0.5}, ["sleep", "600"], "idle"),
        ({"wall_seconds": 0.5}, ["yes"], "wall"),
    ],
)
def test_exceeding_a_limit_ends_the_pipeline_with_that_limit_as_its_reason(
    bench: Bench, limits: dict[str, Any], command: list[str], reason: str
) -> None:
    made = bench.pipe_with(limits, command)

    ended = bench.wait(made.process)

    assert (ended["state"], ended["reason"]) == ("failed", reason)
    assert (bench.proc.stat(made.fd).state, bench.proc.stat(made.fd).reason) == ("broken", reason)
    bench.assert_nothing_runs(8)


@pytest.mark.parametrize(
    ("tee", "commands"),
    [([], [["ls", *(f"missing-{number}" for number in range(5000))]]), ([1], [["yes"], ["wc", "-c"]])],
    ids=["stderr", "a tee"],
)
def test_stderr_of_a_stage_has_the_same_limit_as_its_output(
    bench: Bench, tee: list[int], commands: list[list[str]]
) -> None:
    made = bench.pipe_with({"stream_bytes": 100_000, "tee": tee}, *commands)

    ended = bench.wait(made.process)

    assert (ended["state"], ended["reason"]) == ("failed", "bytes")
    flooded = made.tee_fds[0] if tee else made.stderr_fd
    assert bench.proc.stat(flooded).bytes == 100_000
    for fd in (made.fd, made.stderr_fd, *made.tee_fds):
        assert (bench.proc.stat(fd).state, bench.proc.stat(fd).reason) == ("broken", "bytes")
    bench.assert_nothing_runs(8)


def test_a_tree_that_is_full_fails_the_pipeline(bench: Bench) -> None:
    bench.begin(limits=fdstore.TreeLimits(tree_bytes=1_000_000))

    ended = bench.run("yes")

    assert (ended["state"], ended["reason"]) == ("failed", "quota_exceeded")
    assert bench.proc.stat(ended["fd"]).state == "broken"
    assert bench.proc.stat(ended["fd"]).reason == "quota_exceeded"


# --- what it leaves behind


def test_a_pipeline_releases_its_internal_streams_and_keeps_the_named_ones(bench: Bench) -> None:
    given = bench.proc.create("text\n").fd

    ended = bench.run("cat", in_fd=given)

    assert {each.fd for each in bench.proc.list()} == {given, ended["fd"], ended["stderr_fd"]}
    tree = f"fdstore:{{{bench.proc.id}}}"
    assert bench.redis.exists(f"{tree}:{ended['process']}:fds") == 0
    assert bench.redis.smembers(f"{tree}:{bench.proc.id}:fd:1:holders") == {bench.proc.id}


def test_repeating_a_call_id_starts_one_pipeline(bench: Bench) -> None:
    given = {"commands": ["echo once"]}

    first = bench.tools.call("pipe", given, "toolu_1")

    assert bench.tools.call("pipe", given, "toolu_1") == first
    assert len(bench.store.tree(bench.proc.id).members) == 2
