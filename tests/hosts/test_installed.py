"""The hosts that the tests of this folder run are the pinned ones."""

from __future__ import annotations

import subprocess
from pathlib import Path


def version(program: Path, environment: dict[str, str]) -> str:
    return subprocess.run(
        [program, "--version"], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_the_pinned_hosts_start(claude: Path, codex: Path, node: Path, empty_home: dict[str, str]) -> None:
    assert version(claude, empty_home).startswith("2.1.330")
    assert version(codex, empty_home).strip() == "codex-cli 0.169.0"
    assert version(node, empty_home).startswith("v22.")
