"""A worker's child that dies: its processes continue immediately, and only the one that killed it fails."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from fdstore.client import Store
from fdstore.local.worker import worker_command
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import ProcessRecord
from fdstore.store.processes import process_records
from fdstore.testing import Reply, Request, ScriptedModel, call, say, slow
from tests.conftest import children_of, is_running
from tests.thorough import thorough
from tests.waiting import PATIENCE_S, wait_until
from tests.with_workers.agent_harness import launch
from tests.with_workers.conftest import StartAgentWorker
from tests.worker_process import WorkerProcess

INNOCENTS = 10
STRIKE_S = 5
FATAL_TOOLS = """
import ctypes, os, re, signal

def exits() -> str:
    "Ends the interpreter, in the best of order."
    os._exit(0)

def is_killed() -> str:
    "Is killed, as by a kernel that has no memory left."
    os.kill(os.getpid(), signal.SIGKILL)

def crashes() -> str:
    "Crashes the interpreter."
    ctypes.string_at(0)

def freezes() -> str:
    "Keeps Python's lock for longer than any lease."
    re.match("(a+)+$", "a" * 60 + "b")
"""
KILLER = """
[model]
name = "scripted"
[prompt]
system = "You are KILLER."
[tools]
python = ["fatal_tools:exits", "fatal_tools:is_killed", "fatal_tools:crashes",
    "fatal_tools:freezes"]
"""
INNOCENT = """
[model]
name = "scripted"
[prompt]
system = "You are INNOCENT."
[tools]
enabled = ["list_fds"]
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    (tmp_path / "fatal_tools.py").write_text(FATAL_TOOLS)
    (tmp_path / "killer.toml").write_text(KILLER)
    (tmp_path / "innocent.toml").write_text(INNOCENT)
    return tmp_path


def records(store: Store, roots: list[str]) -> list[ProcessRecord]:
    return [store.run(process_records.record(store.prefix, root)) for root in roots]


def wait_until_ended(store: Store, roots: list[str]) -> None:
    wait_until(lambda: all(each.state in ENDED for each in records(store, roots)), PATIENCE_S)


class CrashAfterAllArrived:
    """A script that holds the first turn of every agent until all have asked. Then the killer crashes its
    worker while the others still wait for the model, so those on its worker never get that answer."""

    def __init__(self, kill_tool: str) -> None:
        self._kill_tool = kill_tool
        self._there = threading.Barrier(INNOCENTS + 1)
        self._met: Counter[str] = Counter()

    def __call__(self, request: Request) -> Reply:
        agent = str(request.messages[0]["content"])
        self._met[agent] += 1
        if self._met[agent] == 1:
            self._there.wait(PATIENCE_S)
            return call(self._kill_tool) if "killer" in agent else slow(call("list_fds"), STRIKE_S)
        if "killer" in agent:
            return call(self._kill_tool)
        return call("list_fds") if request.turn_number < 2 else say("done")


@pytest.mark.parametrize(
    ("kill_tool", "workers"),
    [
        ("is_killed", 1),
        pytest.param("freezes", 1, marks=pytest.mark.long),
        pytest.param("exits", 1, marks=pytest.mark.long),
        pytest.param("crashes", 1, marks=pytest.mark.long),
        pytest.param("is_killed", 2, marks=pytest.mark.long),
        pytest.param("exits", 2, marks=pytest.mark.long),
        pytest.param("crashes", 2, marks=pytest.mark.long),
    ],
)
def test_an_agent_that_kills_its_worker_fails_and_the_others_finish(
    store: Store, programs: Path, start_agent_worker: StartAgentWorker, kill_tool: str, workers: int
) -> None:
    with ScriptedModel(CrashAfterAllArrived(kill_tool)) as model:
        workers_started = [start_agent_worker(store.url, model, INNOCENTS + 1) for _ in range(workers)]
        innocents = [launch(store, programs / "innocent.toml", f"innocent {n}") for n in range(INNOCENTS)]
        killer = launch(store, programs / "killer.toml", "killer")

        wait_until_ended(store, [*innocents, killer])
        assert all(worker.is_alive for worker in workers_started)

    [poison] = records(store, [killer])
    assert (poison.state, poison.reason, poison.losses) == ("failed", "poison", 3)
    ended = records(store, innocents)
    assert [(each.state, each.exit_code) for each in ended] == [("exited", 0)] * INNOCENTS
    assert max(each.losses for each in ended) == 1


@pytest.mark.parametrize("kill_tool", ["is_killed", *thorough("it waits for a freeze", "freezes")])
def test_a_pool_process_that_dies_does_not_affect_the_others(
    store: Store, programs: Path, start_agent_worker: StartAgentWorker, kill_tool: str
) -> None:
    def script(request: Request) -> Reply:
        return call(kill_tool) if "KILLER" in str(request.system) else say("done")

    with ScriptedModel(script) as model:
        worker = start_agent_worker(store.url, model, 2, "prefork")
        killer = launch(store, programs / "killer.toml", "killer")
        innocent = launch(store, programs / "innocent.toml", "innocent")

        wait_until_ended(store, [killer, innocent])

    assert [(each.state, each.losses) for each in records(store, [killer, innocent])] == [
        ("failed", 3),
        ("exited", 0),
    ]
    assert "of the worker's pool died: 1 of the 1 processes" in worker.log


@pytest.fixture
def busy(
    store: Store, programs: Path, start_agent_worker: StartAgentWorker
) -> Iterator[tuple[WorkerProcess, str]]:
    """A worker in the middle of an agent's first request, which is never answered."""
    asked = threading.Event()

    def script(request: Request) -> Reply:
        first = not asked.is_set()
        asked.set()
        return slow(say("never said"), 3600) if first else say("done")

    with ScriptedModel(script) as model:
        worker = start_agent_worker(store.url, model, 2)
        root = launch(store, programs / "innocent.toml", "wait")
        assert asked.wait(PATIENCE_S)
        yield worker, root


def test_a_killed_child_is_replaced_under_the_same_name_and_its_agent_continues(
    store: Store, busy: tuple[WorkerProcess, str]
) -> None:
    worker, root = busy
    [before] = records(store, [root])
    killed = worker.working_pid

    os.kill(killed, signal.SIGKILL)

    wait_until_ended(store, [root])
    [after] = records(store, [root])
    assert (before.worker, after.state, after.losses) == (worker.name, "exited", 1)
    assert (
        f"worker process {killed} was ended by SIGKILL: 1 of the 1 processes that it held were given back"
        in worker.log
    )
    worker.terminate()
    assert worker.process.wait(PATIENCE_S) == 0


def test_no_child_outlives_its_supervisor(busy: tuple[WorkerProcess, str]) -> None:
    worker, _ = busy
    children = children_of(worker.process.pid)

    os.kill(worker.process.pid, signal.SIGKILL)

    assert children
    wait_until(lambda: not any(map(is_running, children)))


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGHUP, 0),
        pytest.param(signal.SIGINT, 1, marks=pytest.mark.long),
        pytest.param(signal.SIGQUIT, 0, marks=pytest.mark.long),
    ],
)
def test_a_signal_to_the_supervisor_ends_an_idle_worker(
    store: Store, start_agent_worker: StartAgentWorker, number: signal.Signals, status: int
) -> None:
    with ScriptedModel([]) as model:
        worker = start_agent_worker(store.url, model)
        children = children_of(worker.process.pid)

        worker.process.send_signal(number)

        assert worker.process.wait(PATIENCE_S) == status, worker.log
        assert not any(map(is_running, children))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("unix:///nowhere/redis.sock", "store_unavailable"),
        *thorough("another reason", ("http://example.org", "invalid_argument")),
    ],
)
def test_a_worker_that_cannot_start_ends_with_the_reason(url: str, said: str) -> None:
    done = subprocess.run(
        worker_command("--url", url),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    # a wrong URL is a wrong command line
    code = 2 if said == "invalid_argument" else 1
    assert (done.returncode, done.stderr.count("\n")) == (code, 1)
    assert done.stderr.startswith(f"fdstore: {said}: ")
