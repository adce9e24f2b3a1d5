"""The contract as a model sees it: a toolset with all tools on stored texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from fdstore import Toolset
from fdstore.client import Process
from fdstore.results.context import Context
from tests.on_redis.conformance.calling import TEXT_TOOLS, context_of


@pytest.fixture
def tools(proc: Process, tmp_path: Path) -> Toolset:
    return Toolset(proc, enabled=TEXT_TOOLS, export_root=tmp_path)


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, Path]:
    """A program that preloads a file, and one without links."""
    (tmp_path / "plain.toml").write_text('[program]\ndescription = "adds"\n[model]\nname = "any"\n')
    (tmp_path / "notes.txt").write_text("its own notes")
    (tmp_path / "reader.toml").write_text(
        '[model]\nname = "any"\n[prompt]\nsystem = "You read."\n[tools]\nenabled = ["read_fd"]\n'
        '[preload]\nfiles = ["notes.txt"]\n'
    )
    return {"reader": tmp_path / "reader.toml", "adder": tmp_path / "plain.toml"}


@pytest.fixture
def spawning(proc: Process, programs: dict[str, Path]) -> Toolset:
    return Toolset(proc, enabled=["read_fd", "spawn"], programs=programs, preload_root=".")


@pytest.fixture
def context(proc: Process, programs: dict[str, Path], tmp_path: Path) -> Context:
    """The context of `spawning`."""
    return context_of(proc, ["read_fd", "spawn"], programs=programs, preload_root=tmp_path)
