"""Writing files through `Target`, and seeing what a directory holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from fdstore.files.target import Target
from tests.waiting import PATIENCE_S

Mode = Literal["write", "append"]
MODES: tuple[Mode, ...] = ("write", "append")
both_modes = pytest.mark.parametrize("mode", MODES)


def put(
    path: str | Path,
    data: bytes = b"new",
    *,
    mode: Mode = "write",
    exist_ok: bool = True,
    root: str | Path | None = None,
) -> int:
    """Write `data` to `path` in one go."""
    with Target(path, mode=mode, exist_ok=exist_ok, root=root) as target:
        target.write(data)
        return target.commit()


def listing(directory: Path) -> dict[str, bytes | None]:
    """Every name below `directory`, with its content where it is a file: equal means untouched."""
    return {
        str(found.relative_to(directory)): found.read_bytes() if found.is_file() else None
        for found in sorted(directory.rglob("*"))
    }


def run_python(script: str, directory: Path) -> str:
    """Run a script in an interpreter of its own, in this directory, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
