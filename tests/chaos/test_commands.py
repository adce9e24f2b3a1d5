"""The commands of a person at a terminal, interrupted and killed; real workers do the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fdstore.client import Store
from fdstore.errors import FDStoreError
from fdstore.local.redis_server import PrivateServer
from fdstore.model.lifecycle import ENDED
from fdstore.testing import Reply, Request, ScriptedModel, call, say, slow
from tests.chaos.agents import record_of, write_program
from tests.chaos.conftest import Faults
from tests.chaos.worker_pool import WorkerPool
from tests.children import Child
from tests.process_template import ForkedChild
from tests.thorough import thorough
from tests.waiting import PATIENCE_S, wait_until

BOSS = """
[tools]
enabled = ["spawn"]
[linked_programs]
hand = "hand.toml"
"""
Start = Callable[..., Child[str]]


class GatedScript:
    """A script for a `boss` that spawns a `hand`. `asked` has an event for each first request; the requests
    named in `held` are answered after an hour."""

    def __init__(self) -> None:
        self.asked = {"boss": threading.Event(), "hand": threading.Event(), "last": threading.Event()}
        self.held: set[str] = set()

    @property
    def script(self) -> dict[str, object]:
        return {"You are BOSS": self._boss, "You are HAND": self._hand}

    def _boss(self, request: Request) -> Reply:
        if request.turn_number == 0:
            return self._delay("boss", call("spawn", program_name="hand", query="help"))
        return self._delay("last", say(f"the hand said {request.last_text().splitlines()[1]}"))

    def _hand(self, request: Request) -> Reply:
        return self._delay("hand", say("done"))

    def _delay(self, agent: str, reply: Reply) -> Reply:
        first = not self.asked[agent].is_set()
        self.asked[agent].set()
        return slow(reply, 3600) if first and agent in self.held else reply


@pytest.fixture
def gated_script() -> GatedScript:
    return GatedScript()


@pytest.fixture
def model(gated_script: GatedScript, worker_pool: WorkerPool) -> Iterator[ScriptedModel]:
    with worker_pool.scripted(gated_script.script) as listening:
        yield listening


@pytest.fixture
def command(server: PrivateServer, model: ScriptedModel, tmp_path: Path) -> Iterator[Start]:
    """`command("run", ...)` starts the command in a folder with the programs."""
    write_program(tmp_path, "boss", BOSS)
    write_program(tmp_path, "hand")
    started: list[Child[str]] = []

    def start(*arguments: str) -> Child[str]:
        process: Child[str] = ForkedChild(
            "tests.chaos.quick_command",
            arguments,
            cwd=tmp_path,
            env={**os.environ, **model.environ, "FDSTORE_URL": server.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def run_boss(command: Start, *more: str) -> Child[str]:
    return command("run", "boss.toml", "-p", "do it", "--name", "boss", *more)


def assert_interrupted(command: Child[str], store: Store) -> None:
    """Check that the command ends because it was interrupted, with all its agents."""
    assert command.wait(PATIENCE_S) == 130
    assert {(m.state, m.reason) for m in store.tree("boss").members} == {("cancelled", "interrupted")}


def test_ctrl_c_cancels_a_run_and_its_descendants(
    command: Start, gated_script: GatedScript, store: Store, worker_pool: WorkerPool, faults: Faults
) -> None:
    gated_script.held.add("hand")
    worker_pool.start_worker(1).wait_until_ready()
    running = run_boss(command)
    assert gated_script.asked["hand"].wait(PATIENCE_S)

    running.send_signal(signal.SIGINT)
    faults.note("run interrupted")

    assert_interrupted(running, store)


@pytest.mark.thorough("acceptance/test_while_it_goes_on.py has these verbs without a fault")
def test_ctrl_c_cancels_a_run_that_a_worker_has_taken_over(
    command: Start, gated_script: GatedScript, store: Store, worker_pool: WorkerPool, faults: Faults
) -> None:
    gated_script.held.add("hand")
    worker_pool.start_worker(2).wait_until_ready()
    running = run_boss(command)
    assert running.stderr is not None
    assert gated_script.asked["hand"].wait(PATIENCE_S)
    running.send_signal(signal.SIGSTOP)
    faults.note("run stopped")
    wait_until(lambda: record_of(store, "boss").attempt == 2, what="a worker that takes it")
    running.send_signal(signal.SIGCONT)
    wait_until(lambda: "a worker has taken over" in running.stderr.readline(), what="a word of it")

    running.send_signal(signal.SIGINT)

    assert_interrupted(running, store)


def test_ctrl_c_with_on_interrupt_leave_hands_the_run_to_a_worker(
    command: Start, gated_script: GatedScript, store: Store, worker_pool: WorkerPool, faults: Faults
) -> None:
    gated_script.held.add("hand")
    worker_pool.start_worker(2).wait_until_ready()
    running = run_boss(command, "--on-interrupt", "leave")
    assert gated_script.asked["hand"].wait(PATIENCE_S)

    running.send_signal(signal.SIGINT)
    faults.note("run interrupted")

    _, err = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130
    assert "boss is left to the workers; fdstore attach boss" in err
    wait_until(lambda: record_of(store, "boss").state == "waiting", what="a worker that goes on")
    assert record_of(store, "boss").losses == 0
    watching = command("attach", "boss", "--on-interrupt", "cancel")
    assert watching.stderr is not None
    wait_until(lambda: "hand" in watching.stderr.readline(), what="a word of the hand")
    watching.send_signal(signal.SIGINT)
    assert_interrupted(watching, store)


@pytest.mark.parametrize("moment", ["hand", *thorough("other moments", "boss", "last")])
def test_a_killed_run_resumes_where_it_stopped(
    moment: str,
    command: Start,
    gated_script: GatedScript,
    store: Store,
    worker_pool: WorkerPool,
    faults: Faults,
) -> None:
    gated_script.held.add(moment)
    worker = worker_pool.start_worker(1).wait_until_ready()
    running = run_boss(command)
    assert gated_script.asked[moment].wait(PATIENCE_S)
    worker.kill()
    running.kill()
    faults.note("run killed")

    resumed = command("resume", "boss")
    wait_until(lambda: record_of(store, "boss").attempt == 2, what="the resumption")
    worker_pool.start_worker(1)
    out, err = resumed.communicate(timeout=PATIENCE_S)

    assert (resumed.returncode, out) == (0, "the hand said done\n"), err
    tree = store.tree("boss")
    assert [(m.state, m.exit_code) for m in tree.members] == [("exited", 0)] * 2
    assert record_of(store, "boss").losses == 1


def test_a_worker_continues_a_killed_run(
    command: Start, gated_script: GatedScript, store: Store, worker_pool: WorkerPool, faults: Faults
) -> None:
    gated_script.held.add("last")
    worker_pool.start_worker(1).wait_until_ready()
    running = run_boss(command)
    assert gated_script.asked["last"].wait(PATIENCE_S)

    running.kill()
    faults.note("run killed")

    wait_until(lambda: record_of(store, "boss").state in ENDED)
    out, _ = command("attach", "boss").communicate(timeout=PATIENCE_S)
    assert out == "the hand said done\n"


@pytest.mark.thorough("acceptance/test_while_it_goes_on.py has these verbs without a fault")
def test_resume_refuses_a_process_that_is_still_running(
    command: Start, gated_script: GatedScript, store: Store, worker_pool: WorkerPool, faults: Faults
) -> None:
    gated_script.held |= {"boss", "hand"}
    running = run_boss(command)
    assert gated_script.asked["boss"].wait(PATIENCE_S)

    _, err = command("resume", "boss").communicate(timeout=PATIENCE_S)
    assert "runs it; watch it with: fdstore attach boss" in err
    with pytest.raises(FDStoreError):
        store.process("nobody.1")
    _, err = command("resume", "nobody").communicate(timeout=PATIENCE_S)
    assert "not_found" in err

    running.kill()
    faults.note("run killed")
    worker_pool.start_worker(1).wait_until_ready()
    assert gated_script.asked["hand"].wait(PATIENCE_S)
    wait_until(lambda: record_of(store, "boss").state == "waiting")
    _, err = command("resume", "boss").communicate(timeout=PATIENCE_S)
    assert "it waits for boss.1; watch it with: fdstore attach boss" in err


@pytest.mark.thorough("acceptance/test_while_it_goes_on.py has these verbs without a fault")
def test_a_detached_run_can_be_attached_detached_and_killed(
    command: Start, gated_script: GatedScript, store: Store, worker_pool: WorkerPool, faults: Faults
) -> None:
    gated_script.held.add("hand")
    worker_pool.start_worker(1).wait_until_ready()
    out, err = run_boss(command, "--detach").communicate(timeout=PATIENCE_S)
    assert out == "boss\n", err
    assert gated_script.asked["hand"].wait(PATIENCE_S)
    watching = command("attach", "boss")
    assert watching.stderr is not None
    wait_until(lambda: "hand" in watching.stderr.readline(), what="a word of the hand")

    watching.send_signal(signal.SIGINT)
    faults.note("attach interrupted")
    assert watching.wait(PATIENCE_S) == 130
    assert {m.state for m in store.tree("boss").members} == {"waiting", "running"}

    last = command("attach", "boss", "-q")
    out, _ = command("kill", "boss").communicate(timeout=PATIENCE_S)
    assert out == "cancelled boss\ncancelled boss.1\n"
    assert last.wait(PATIENCE_S) == 1
    assert {m.state for m in store.tree("boss").members} == {"cancelled"}
