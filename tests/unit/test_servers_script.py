"""`make test-servers` fails where a server that it names is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "test_servers.py"


@pytest.mark.thorough("it is about the tests")
def test_a_named_server_that_is_missing_fails_the_run() -> None:
    ran = subprocess.run([sys.executable, SCRIPT, "5.0"], capture_output=True, text=True, check=False)

    assert ran.returncode == 1
    assert "5.0  NOT FOUND" in ran.stdout
