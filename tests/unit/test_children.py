"""A child process of a test cannot block the test for ever, and never outlives it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import children
from tests.children import Child

HANGS = [sys.executable, "-c", "print('begun', flush=True); input()"]
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}


def test_reading_from_a_child_that_hangs_stops_at_the_deadline_and_the_child_is_named() -> None:
    with Child(HANGS, deadline_s=0.5, **PIPES) as child:
        assert child.stdout.read() == "begun\n"

    assert child.returncode == -9
    [problem] = children.end_remaining_children()
    assert "did not end in time" in problem
    assert sys.executable in problem


def test_a_child_left_running_is_killed_and_named() -> None:
    child = Child(HANGS, **PIPES)
    child.stdout.readline()

    [problem] = children.end_remaining_children()

    assert "was left running" in problem
    assert child.returncode == -9


def test_a_failing_test_kills_its_child_immediately() -> None:
    child = Child(HANGS, **PIPES)

    with pytest.raises(ZeroDivisionError), child:
        raise ZeroDivisionError

    assert child.returncode == -9
    assert children.end_remaining_children() == []


def test_a_child_of_a_fixture_lives_until_it_is_ended() -> None:
    child = Child(HANGS, deadline_s=None, **PIPES)

    assert children.end_remaining_children() == []
    assert child.poll() is None
    assert child.end() == -15


def test_a_child_buffers_its_output_as_on_a_users_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")

    with Child(
        [sys.executable, "-c", "import os; print('PYTHONUNBUFFERED' in os.environ)"], **PIPES
    ) as child:
        assert child.communicate()[0] == "False\n"
