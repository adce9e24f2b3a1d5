"""Programs whose interpreter ends before them: killed from outside, as by the kernel, or too large to be
suspended."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from fdstore.client import Store
from tests.conftest import interpreters_of
from tests.on_redis.programs.test_programs_of_agents import Model, answer_of, launch
from tests.on_redis.running_agents import Agents, ran, running


def kill_interpreter(words: str) -> str:
    """Kill the interpreter of the program that calls this, the first time."""
    ran.append(words)
    if ran.count(words) == 1:
        os.kill(min(interpreters_of(os.getpid())), signal.SIGKILL)
    return words


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def agents(store: Store, model: Model, tmp_path: Path) -> Iterator[Agents]:
    ran.clear()
    with running(store, model, tmp_path) as agents:
        yield agents


def test_variables_that_are_too_large_to_be_suspended_are_an_error_of_the_call(
    agents: Agents, model: Model
) -> None:
    model.codes = ("x = 'a' * 180_000_000\nprint(await ask('?', 'x\\n'))",)
    launch(agents)
    assert "too_large" in answer_of(agents)


def test_a_program_whose_interpreter_is_killed_from_outside_gives_the_same_result(
    agents: Agents, model: Model
) -> None:
    model.codes = ("a = create('once')\nprint(a.fd, await kill_interpreter(words='a'))",)
    launch(agents, python=(f"{__name__}:kill_interpreter",))
    assert "fd:2 a\n" in answer_of(agents)
