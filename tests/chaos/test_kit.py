"""The fault injection itself: a test without a fault fails, and every schedule can be repeated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.conftest import Faults

PROJECT = Path(__file__).parents[2]
TESTS = """
def test_quiet(seed):
    print("nothing happens")

def test_rough(seed, faults):
    faults.note("worker killed")
"""


@pytest.mark.thorough("it is about the tests")
def test_a_test_without_a_fault_fails_and_prints_its_seed(tmp_path: Path, faults: Faults) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    plugins = ["-p", "tests.chaos.conftest", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", str(tmp_path), *plugins, "-vv", "-rA"]

    ended = subprocess.run(
        command, cwd=PROJECT, env={**os.environ, "CHAOS_SEED": "17"}, capture_output=True, text=True
    )
    faults.note("fault left out")

    assert ended.returncode == 1
    assert "no fault happened, so this test proved nothing" in ended.stdout
    assert "test_quiet[seed-17] ERROR" in ended.stdout
    assert "test_rough[seed-17] PASSED" in ended.stdout
    assert "1 x worker killed" in ended.stdout
    assert "test_rough[seed-17] ERROR" not in ended.stdout
