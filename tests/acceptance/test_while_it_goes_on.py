"""Output of a running verb reaches a reader behind a pipe immediately."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fdstore.model.records import TOKEN_COUNTS
from fdstore.testing import Request, ScriptedModel, say
from tests.acceptance.conftest import Command
from tests.conftest import is_running
from tests.waiting import PATIENCE_S, wait_until

PROGRAM = '[model]\nname = "scripted"\n[prompt]\nsystem = "You wait."\n'


@pytest.fixture
def answer_gate(command: Command) -> Iterator[threading.Event]:
    """An event that the agents of `command` wait for before they answer."""
    may_answer = threading.Event()

    def script(request: Request) -> object:
        assert may_answer.wait(PATIENCE_S)
        return say("Done.")

    with ScriptedModel(script) as model:
        command.environment |= model.environ
        (command.folder / "program.toml").write_text(PROGRAM)
        yield may_answer
        may_answer.set()


def test_run_and_attach_print_progress_without_delay(command, answer_gate):
    with command.start("run", "program.toml", "-p", "go", "--name", "triage") as running:
        told = running.stderr.readline()
        with command.start("attach", "triage") as watching:
            seen = watching.stderr.readline()
            answer_gate.set()
            watched, _ = watching.communicate()
        answer, _ = running.communicate()

    assert b"triage" in told
    assert b"new process runs program" in seen
    assert (answer, watched) == (b"Done.\n", b"Done.\n")
    assert (running.returncode, watching.returncode) == (0, 0)


def test_sigterm_and_sighup_end_run_and_attach_like_ctrl_c(command, store, answer_gate):
    def state() -> str:
        return store.tree("triage").members[0].state

    with command.start("run", "program.toml", "-p", "go", "--name", "triage") as running:
        running.stderr.readline()
        with command.start("attach", "triage") as watching:
            watching.stderr.readline()
            watching.send_signal(signal.SIGHUP)
            watching.communicate()
        wait_until(lambda: state() == "running")
        running.send_signal(signal.SIGTERM)
        running.communicate()

    assert (watching.returncode, running.returncode) == (128 + signal.SIGHUP, 128 + signal.SIGTERM)
    assert state() == "cancelled"


def test_run_prints_its_tokens_with_its_events_also_to_a_pipe(command, answer_gate):
    answer_gate.set()

    loud = command("run", "program.toml", "-p", "go", "--name", "triage")
    again = command("attach", "triage")
    quiet = command("run", "program.toml", "-p", "go", "-q")

    assert re.fullmatch(r"fdstore: tokens: \d+ in, \d+ out", loud.err.splitlines()[-1])
    assert again.err.splitlines()[-1] == loud.err.splitlines()[-1]
    assert (loud.out, quiet.out, quiet.err) == ("Done.\n", "Done.\n", "")


def test_json_of_run_ps_and_status_has_the_tokens_of_the_tree(command, store, answer_gate):
    answer_gate.set()

    ended = command("run", "program.toml", "-p", "go", "--name", "triage", "--json").document
    [process] = command("ps", "triage", "--json").documents
    status = command("status", "--json").document

    used = store.tree("triage").all_tokens
    assert used > 0
    assert (ended["tree_tokens"], process["tree_tokens"]) == (used, used)
    assert status["store"]["tokens"] == {"triage": used}
    counts = status["store"]["token_counts"]["triage"]
    assert counts == {each: process[each] for each in TOKEN_COUNTS}  # it is the only process
    assert counts["input_tokens"] + counts["output_tokens"] == used
    for document in (ended, process):
        assert {each: document[f"tree_{each}"] for each in TOKEN_COUNTS} == counts


def test_run_of_an_agent_killed_from_outside_reports_only_the_cancellation(command, store, answer_gate):
    with command.start("run", "program.toml", "-p", "go", "--name", "triage", "-q") as running:
        wait_until(lambda: any(each.state == "running" for each in store.processes()))
        killed = command("kill", "triage")
        out, err = running.communicate(timeout=PATIENCE_S)  # the model has not answered
        assert not answer_gate.is_set()

    assert killed.out == "cancelled triage\n"
    assert (running.returncode, out) == (1, b"")
    assert err.startswith(b"fdstore: triage cancelled")
    assert err.count(b"\n") == 1


@pytest.mark.thorough("`make demo` shows it")
def test_the_demo_announces_each_step_before_doing_it(fresh, tmp_path):
    with fresh.start("demo", "-o", tmp_path / "out") as demo:
        first = demo.stdout.readline()
        started = next(line for line in demo.stdout if b"A worker is running" in line)
        worker = re.search(rb"pid (\d+)", started)
        assert worker is not None
        assert b"redis.sock" not in Path(f"/proc/{int(worker[1])}/cmdline").read_bytes()
        demo.send_signal(signal.SIGTERM)
        demo.communicate()

    assert first == b"The model is a scripted server on this machine. Redis and the worker are real.\n"
    assert demo.returncode == 128 + signal.SIGTERM
    assert not is_running(int(worker[1]))
