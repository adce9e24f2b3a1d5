"""Limits against hangs: the innermost fails first, and a hang shows where every thread stands."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import waiting
from tests.waiting import CHILD_DEADLINE_S, PATIENCE_S, stretched

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
HANGS = """
import threading

never = threading.Event()

def waits_in_a_thread():
    never.wait()

def test_that_hangs():
    threading.Thread(target=waits_in_a_thread, daemon=True).start()
    never.wait()
"""


def test_the_limit_of_a_wait_is_below_that_of_a_child_and_of_a_test() -> None:
    options = tomllib.loads(PROJECT.read_text())["tool"]["pytest"]["ini_options"]

    assert PATIENCE_S < CHILD_DEADLINE_S < options["timeout"] < options["faulthandler_timeout"]


@pytest.mark.thorough("it is about the tests")
@pytest.mark.parametrize("limit", ["faulthandler_timeout", "timeout"])
def test_a_test_that_hangs_prints_the_stacks_of_all_threads(tmp_path: Path, limit: str) -> None:
    (tmp_path / "test_hangs.py").write_text(HANGS)
    limits = {"timeout": "3", "faulthandler_timeout": "3", limit: "0.5"}
    options = [word for name, value in limits.items() for word in ("-o", f"{name}={value}")]

    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", PROJECT, *options, tmp_path / "test_hangs.py"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )

    shown = ended.stdout + ended.stderr
    assert ended.returncode == 1
    assert "waits_in_a_thread" in shown
    assert "in test_that_hangs" in shown or "test_that_hangs()" in shown


@pytest.mark.parametrize(("slowness", "seconds"), [(1.0, 2.0), (3.0, 2.0), (6.0, 4.0), (1000.0, 20.0)])
def test_a_short_time_is_longer_on_a_busy_machine(
    monkeypatch: pytest.MonkeyPatch, slowness: float, seconds: float
) -> None:
    monkeypatch.setattr(waiting, "slowness", lambda: slowness)

    assert stretched(2.0) == seconds
