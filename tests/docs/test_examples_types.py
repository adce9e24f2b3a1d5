"""The examples have types: a reader's editor checks what it copies from them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]


def test_the_programs_of_the_examples_pass_mypy():
    # one program for each name: mypy takes modules of different projects for one
    programs = {path.name: path for path in sorted((ROOT / "examples").glob("[!f]*/*.py"))}

    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *map(str, programs.values())],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )

    assert len(programs) > 8
    assert done.returncode == 0, done.stdout
