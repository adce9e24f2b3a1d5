"""The log of a tree that has ended begins with what came of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from click.testing import CliRunner

from fdstore.cli import cli
from fdstore.client import Process, Store
from fdstore.store.processes import processes


def log(redis_url: str, *options: str) -> list[str]:
    done = CliRunner().invoke(cli, ["log", "triage", *options, "--url", redis_url])
    assert done.exit_code == 0, done.output
    return done.stdout.split("\n")


def test_the_log_of_a_tree_begins_with_its_answer_and_its_failures_by_reason(
    store: Store, proc: Process, execute: Callable[..., Any], redis_url: str
) -> None:
    execute("HSET", proc.handle.keys.record, "program", "triage", "task", "Why did it fail?")
    for _ in range(3):
        child = store.run(processes.create_child(proc.handle, None, state="ready"))
        store.run(processes.end(child, "failed", reason="ModelFailed: the model answered 500"))
    store.run(processes.end(proc.handle, answer="A full disk.\nClean it \x1b[31m.\n"))

    assert log(redis_url)[:4] == [
        "task     Why did it fail?",
        "answer   A full disk.",
        "         Clean it \\u{1b}[31m.",
        "failed   3 x ModelFailed: the model answered 500 (first in triage.1)",
    ]
    assert "task     Why did it fail?" not in log(redis_url, "--json")
    assert not any(line.startswith("answer ") for line in log(redis_url, "-n", "5"))


def test_the_log_of_a_run_that_goes_on_has_no_outcome_yet(
    proc: Process, execute: Callable[..., Any], redis_url: str
) -> None:
    execute("HSET", proc.handle.keys.record, "program", "triage", "task", "Why did it fail?")

    assert "task     Why did it fail?" not in log(redis_url)
