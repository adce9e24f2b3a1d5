"""Writes generated files, or checks that they are current."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]


def update(files: Iterable[tuple[str, str]], *, check: bool) -> int:
    """Write each file (its path in the repository, its text) that is stale; with `check`, only name them.
    Return the exit code: 1 if a check found a stale file."""
    stale = []
    for name, text in files:
        target = ROOT / name
        if not target.exists() or target.read_text("utf-8") != text:
            stale.append(name)
            if not check:
                target.write_text(text, "utf-8")
    if stale:
        print("stale:" if check else "written:", *stale)
    return 1 if stale and check else 0
