"""A worker that receives a stop signal while its agents are in steps that do not end."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest

from fdstore.client import Store
from fdstore.testing import Reply, Request, call, say, slow
from tests.chaos.agents import has_ended, launch, record_of, write_program
from tests.chaos.conftest import Execute, Faults
from tests.chaos.worker_pool import WorkerPool
from tests.thorough import thorough
from tests.waiting import PATIENCE_S, wait_until

SECTIONS = """
[tools]
enabled = ["read_fd"]
python = ["agent_tools:rest"]
"""


@pytest.mark.parametrize("pool", ["threads", *thorough("the other pool", "prefork")])
@pytest.mark.parametrize("busy_with", ["a model", *thorough("half a minute", "a tool")])
def test_sigterm_during_a_long_step_hands_the_agent_to_another_worker(
    busy_with: str,
    pool: str,
    store: Store,
    worker_pool: WorkerPool,
    tmp_path: Path,
    execute: Execute,
    faults: Faults,
) -> None:
    program = write_program(tmp_path, "patient", SECTIONS)
    busy = threading.Event()

    def script(request: Request) -> Reply:
        first = not busy.is_set()
        busy.set()
        if busy_with == "a tool" and request.turn_number == 0:
            return call("rest", seconds=3600)
        return slow(say("never"), 3600) if first and busy_with == "a model" else say("done")

    with worker_pool.scripted(script):
        # with the usual lease: one of a second is lost on a busy machine, and a loss is counted here
        leaving = worker_pool.start_worker(2, pool=pool, quick=False).wait_until_ready()
        root = launch(store, program, "wait")
        assert busy.wait(PATIENCE_S)
        if busy_with == "a tool":
            wait_until((tmp_path / "resting").exists)

        leaving.send(signal.SIGTERM)
        faults.note("worker stopped in a long step")
        began = time.monotonic()
        wait_until(lambda: record_of(store, root.id).state == "ready")
        assert leaving.process.wait(PATIENCE_S) == 0, leaving.log
        took_s = time.monotonic() - began
        if busy_with == "a model":
            worker_pool.start_worker(1, quick=False).wait_until_ready()
            wait_until(lambda: has_ended(store, root.id))

    print(f"{pool}, {busy_with}: gone after {took_s:.1f} s")
    record = record_of(store, root.id)
    expected = ("exited", 2, 0) if busy_with == "a model" else ("ready", 1, 0)
    assert (record.state, record.attempt, record.losses) == expected
    assert execute("ZCARD", "fdstore:workers") == (busy_with == "a model")


@pytest.mark.thorough("one signal is tested")
def test_a_repeated_signal_ends_no_agent(
    store: Store, worker_pool: WorkerPool, tmp_path: Path, faults: Faults
) -> None:
    program = write_program(tmp_path, "patient", SECTIONS)
    busy = threading.Event()

    def script(request: Request) -> Reply:
        first = not busy.is_set()
        busy.set()
        return slow(say("never"), 3600) if first else say("done")

    with worker_pool.scripted(script):
        leaving = worker_pool.start_worker(1).wait_until_ready()
        root = launch(store, program, "wait")
        assert busy.wait(PATIENCE_S)

        for _ in range(3):
            leaving.send(signal.SIGINT)
            faults.note("worker interrupted")
            threading.Event().wait(0.2)
        leaving.process.wait(PATIENCE_S)
        assert "Traceback" not in leaving.log, leaving.log
        worker_pool.start_worker(1)
        wait_until(lambda: has_ended(store, root.id))

    record = record_of(store, root.id)
    assert (record.state, record.exit_code) == ("exited", 0)
