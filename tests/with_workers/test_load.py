"""The load that a real worker reports: busy slots, lost calls, and that it vanished."""

from __future__ import annotations

import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from fdstore.client import Store
from fdstore.store.processes import process_records, processes
from fdstore.store.views.worker_registry import WorkerLoad, Workers, read_workers
from fdstore.testing import Request, ScriptedModel, call, say
from tests.waiting import PATIENCE_S, wait_until
from tests.with_workers import agent_harness
from tests.with_workers.conftest import StartAgentWorker
from tests.worker_process import WorkerProcess

IMPATIENT = Path(__file__).with_name("impatient_worker.py")
SLOTS = 2
TOOLS = """
import threading
from pathlib import Path

def blocks() -> str:
    "Reads from a pipe that nothing is written to."
    Path(__file__).with_name(f"blocks-{threading.get_ident()}").touch()
    return Path(__file__).with_name("pipe").read_text()
"""
BLOCKED = """
[model]
name = "scripted"
[prompt]
system = "You are BLOCKED."
[tools]
python = ["blocking_tools:blocks"]
"""


def script(request: Request) -> object:
    return call("blocks") if request.turn_number == 0 else say("done")


@pytest.fixture
def launch(store: Store, tmp_path: Path) -> Callable[[], str]:
    """Return a function that starts an agent whose tool blocks its thread."""
    (tmp_path / "blocking_tools.py").write_text(TOOLS)
    (tmp_path / "blocked.toml").write_text(BLOCKED)
    os.mkfifo(tmp_path / "pipe")
    return lambda: agent_harness.launch(store, tmp_path / "blocked.toml")


def wait_until_blocked(folder: Path, count: int) -> None:
    """Return when so many calls of the tool have begun: an agent that is cancelled before ends at once."""
    wait_until(lambda: len(list(folder.glob("blocks-*"))) == count, what="a call that blocks")


def registered(store: Store) -> Workers:
    return store.run(read_workers(store.prefix))


def load_of(store: Store, worker: WorkerProcess) -> WorkerLoad:
    [found] = [each.load for each in registered(store).workers if each.name == worker.name]
    assert found is not None
    return found


def probe(worker: WorkerProcess, path: str) -> tuple[int, str]:
    [url] = re.findall(r"probes at (http://[0-9.:]+)", worker.log)
    try:
        with urllib.request.urlopen(f"{url}{path}", timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_worker_whose_slots_are_all_held_by_lost_calls_says_so_and_is_not_ready(
    store: Store, launch: Callable[[], str], start_agent_worker: StartAgentWorker, tmp_path: Path
) -> None:
    with ScriptedModel(script) as model:
        worker = start_agent_worker(store.url, model, SLOTS, "threads", "--metrics-port", "0")
        assert probe(worker, "/readyz") == (200, "ok\n")
        roots = [launch() for _ in range(SLOTS)]
        wait_until(lambda: load_of(store, worker).busy == SLOTS, what="a full worker")
        busy = load_of(store, worker)
        ready = probe(worker, "/readyz")
        wait_until_blocked(tmp_path, SLOTS)

        for root in roots:
            store.run(processes.cancel(store.prefix, root, "for a test"))

        wait_until(lambda: load_of(store, worker).lost == SLOTS, what="the loss of the calls")
        lost = load_of(store, worker)
        not_ready, metrics = probe(worker, "/readyz"), probe(worker, "/metrics")[1]

    assert (busy.slots, busy.lost, set(busy.runs)) == (SLOTS, 0, set(roots))
    assert ready == (200, "ok\n")
    assert (lost.busy, lost.runs) == (SLOTS, ())
    assert not_ready == (503, "all 2 slots are held by calls that were lost and do not end\n")
    assert "fdstore_worker_busy_slots 2.0" in metrics
    assert "fdstore_worker_lost_slots 2.0" in metrics


@pytest.mark.thorough("another lease that ends")
def test_a_worker_that_was_killed_is_shown_as_gone_with_what_it_held(
    store: Store, launch: Callable[[], str], start_agent_worker: StartAgentWorker
) -> None:
    with ScriptedModel(script) as model:
        worker = start_agent_worker(store.url, model, SLOTS)
        root = launch()
        wait_until(lambda: load_of(store, worker).runs == (root,), what="the start of the agent")

        worker.kill()

        wait_until(lambda: registered(store).vanished, what="the end of its registration")
    [gone] = registered(store).vanished
    assert gone.name == worker.name
    assert gone.load is not None
    assert gone.load.runs == (root,)
    assert 0 < registered(store).now_s - gone.seen_at < PATIENCE_S


@pytest.mark.thorough("ten seconds of waiting")
def test_a_worker_whose_calls_are_lost_for_long_is_replaced_and_works_again(
    store: Store, launch: Callable[[], str], tmp_path: Path
) -> None:
    with ScriptedModel(script) as model:
        options = ["--url", store.url, "-c", "1", "--tools-path", str(tmp_path), "--allow-python", "*"]
        environ = {**os.environ, **model.environ}
        worker = WorkerProcess(tmp_path / "log", options, environ=environ, folder=tmp_path, program=IMPATIENT)
        try:
            worker.wait_until_ready()
            stuck, next_one = launch(), launch()
            wait_until(lambda: load_of(store, worker).runs == (stuck,), what="the start of the agent")
            before = worker.working_pid
            wait_until_blocked(tmp_path, 1)

            store.run(processes.cancel(store.prefix, stuck, "for a test"))

            wait_until(lambda: f"a call of {stuck} has not ended" in worker.log, what="notice of the call")
            wait_until(lambda: f"worker process {before} ended with" in worker.log, what="its replacement")
            wait_until(
                lambda: any(each.load and next_one in each.load.runs for each in registered(store).alive),
                what="the start of the next agent",
            )
            load = load_of(store, worker)
            losses = store.run(process_records.record(store.prefix, next_one)).losses
        finally:
            worker.kill()

    assert (load.lost, load.lost_calls, losses) == (0, 1, 0)
