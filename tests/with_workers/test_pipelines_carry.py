"""Data through pipelines on real worker processes: unchanged, in bounded memory, for every reader."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from fdstore.local.redis_server import PrivateServer
from fdstore.testing import ScriptedModel
from tests.waiting import wait_until
from tests.with_workers.conftest import StartAgentWorker
from tests.with_workers.pipe_bench import Bench, track_growth_kb

MiB_KB = 1024

LINES = "".join(f"line {number}\n" for number in range(20_000))


@pytest.mark.thorough("the texts of other tests are shorter")
def test_a_hundred_megabytes_pass_through_in_bounded_memory(bench: Bench) -> None:
    text = "0123456789abcde\n" * 6_250_000
    given = bench.proc.create(text).fd
    bench.run("true")

    with track_growth_kb(bench.workers[0].working_pid) as grown:
        counted = bench.run("cat", "wc -c", in_fd=given)
        copied = bench.run("cat", in_fd=given)

    assert bench.text(counted["fd"]).strip() == "100000000"
    assert bench.text(copied["fd"]) == text
    assert max(grown) < 64 * MiB_KB


def test_followers_that_start_early_late_or_together_read_the_same_text(bench: Bench) -> None:
    made = bench.pipe("cat", in_fd="new", tee=[1])
    half = len(LINES) // 2

    def follow(fd: str) -> str:
        return "".join(bench.proc.follow(fd))

    with ThreadPoolExecutor(52) as followers:
        early = followers.submit(follow, made["fd"])
        bench.show("write_fd", fd=made["in_fd"], data=LINES[:half])
        bench.proc.read(made["fd"], mode="char", start=half, wait=20)
        at_once = [followers.submit(follow, fd) for fd in [made["fd"], made["tee_fds"]] * 25]
        bench.show("write_fd", fd=made["in_fd"], data=LINES[half:], eof=True)
        bench.wait(made["process"])
        late = follow(made["fd"])

        assert late == LINES
        assert all(each.result() == LINES for each in (early, *at_once))


@pytest.mark.parametrize("out_of_patience", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_chain_loses_no_byte_when_redis_is_killed_and_restarted(
    durable_server: PrivateServer, start_agent_worker: StartAgentWorker, out_of_patience: bool
) -> None:
    with ScriptedModel([]) as model:
        bench = Bench(durable_server, model, start_agent_worker)
        worker = bench.start_worker()
        bench.begin()
        source = bench.pipe("cat", in_fd="new", tee=[1])
        readers = [bench.pipe("cat", "cat", in_fd=source["fd"]) for _ in range(2)]
        bench.show("write_fd", fd=source["in_fd"], data=LINES)

        durable_server.kill()
        if out_of_patience:
            wait_until(lambda: "input of a pipeline waits for the store" in worker.log)
        durable_server.start()
        bench.show("write_fd", fd=source["in_fd"], data=LINES, eof=True)

        for reader in readers:
            assert bench.wait(reader["process"])["exit_code"] == "0"
            assert bench.text(reader["fd"]) == LINES * 2
            assert bench.proc.stat(reader["fd"]).chain == "0 0,0"
        assert bench.text(source["fd"]) == bench.text(source["tee_fds"]) == LINES * 2
        bench.close()


def test_a_stage_that_never_reads_does_not_block_its_writer(bench: Bench) -> None:
    source = bench.pipe("cat", in_fd="new")
    asleep = bench.pipe("sleep 600", in_fd=source["fd"])
    bench.wait_until_running("sleep")
    bench.show("write_fd", fd=source["in_fd"], data="first\n")
    follower = bench.proc.follow(source["fd"])
    assert next(follower) == "first\n"

    for _ in range(20):
        bench.show("write_fd", fd=source["in_fd"], data=LINES)
    bench.show("write_fd", fd=source["in_fd"], data="", eof=True)
    ended = bench.wait(source["process"])

    assert (ended["state"], ended["exit_code"]) == ("exited", "0")
    assert bench.record(asleep["process"]).state == "running"
    assert "".join(follower) == LINES * 20
