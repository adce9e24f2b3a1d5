"""A process that a test starts cannot make the test wait for ever, and never outlives it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import children
from tests.children import Child

HANGS = [sys.executable, "-c", "print('begun', flush=True); input()"]
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}


def test_a_reader_of_a_child_that_hangs_goes_on_at_the_deadline_and_the_child_is_named() -> None:
    with Child(HANGS, deadline_s=0.5, **PIPES) as child:
        assert child.stdout.read() == "begun\n"

    assert child.returncode == -9
    [problem] = children.end_those_left()
    assert "did not end in time" in problem
    assert sys.executable in problem


def test_a_child_that_is_left_running_is_ended_and_named() -> None:
    child = Child(HANGS, **PIPES)
    child.stdout.readline()

    [problem] = children.end_those_left()

    assert "was left running" in problem
    assert child.returncode == -9


def test_a_test_that_fails_beside_a_child_ends_it_at_once() -> None:
    child = Child(HANGS, **PIPES)

    with pytest.raises(ZeroDivisionError), child:
        raise ZeroDivisionError

    assert child.returncode == -9
    assert children.end_those_left() == []


def test_a_child_of_a_fixture_lives_until_it_is_ended() -> None:
    child = Child(HANGS, deadline_s=None, **PIPES)

    assert children.end_those_left() == []
    assert child.poll() is None
    assert child.end() == -15


def test_a_child_buffers_its_output_as_on_a_users_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")

    with Child(
        [sys.executable, "-c", "import os; print('PYTHONUNBUFFERED' in os.environ)"], **PIPES
    ) as child:
        assert child.communicate()[0] == "False\n"
