"""A worker whose machine's clock is two hours off works like any other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

import fdstore
from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.program_loader import Bundle, Limits, Program
from fdstore.agents.runtime.waker import waker
from fdstore.local.redis_server import PrivateServer
from fdstore.store.clock import redis_now
from fdstore.store.processes import process_records
from fdstore.store.views import worker_registry
from fdstore.testing import Request, ScriptedModel, Turn, call, say
from tests.thorough import thorough
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess

LAUNCHER = Path(__file__).with_name("shifted_worker.py")
WALL_S = 600


@pytest.fixture(
    params=[-7200, *thorough("the other direction", 7200)], ids=["two-hours-late", "two-hours-early"]
)
def shifted(
    request: pytest.FixtureRequest, agents_server: PrivateServer, tmp_path: Path
) -> Iterator[WorkerProcess]:
    def script(asked: Request) -> Turn:
        return call("list_fds", id="toolu_a") if asked.turn_number == 0 else say("Done.")

    with ScriptedModel(script) as model:
        environment = {**os.environ, **model.environ, "CLOCK_SHIFT_S": str(request.param)}
        options = ["--url", agents_server.url, "-c", "2"]
        log = tmp_path / "worker.log"
        worker = WorkerProcess(
            log, options, environ=environment, folder=tmp_path, program=LAUNCHER, fresh=True
        )
        try:
            worker.wait_until_ready()
            yield worker
        finally:
            worker.kill()


@pytest.mark.thorough("the clock that counts is that of Redis")
def test_a_worker_with_a_wrong_clock_keeps_leases_and_does_not_shorten_agents(
    shifted: WorkerProcess, agents_server: PrivateServer
) -> None:
    program = Program(name="solo", model="any", tools=("list_fds",), limits=Limits(wall_seconds=WALL_S))
    with fdstore.connect(agents_server.url) as store, redis.Redis.from_url(agents_server.url) as client:
        wait_until(lambda: store.run(worker_registry.workers(store.prefix)) == [shifted.name])
        until = client.zscore("fdstore:workers", shifted.name) or 0.0
        assert 0 < until - store.run(redis_now()) < 11

        launch_root(store, Bundle(root="solo", programs={"solo": program}), "Go.", "solo")
        waker(store.url, store.prefix)("solo")

        wait_until(lambda: store.run(process_records.record("fdstore", "solo")).ended_at is not None)
        ended = store.run(process_records.answer_of("fdstore", "solo"))
        assert (ended.record.state, ended.text, ended.record.attempt) == ("exited", "Done.", 1), shifted.log
